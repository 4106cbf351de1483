"""What each permission leads to in one step: one table, and what follows from it.

The rights of a person are judged by what they reach in any number of steps, alone. A person alone
can do each `alone` step, and with the right to give rights also get every right that one
administrator gives: to themselves, through a colleague who does not exist (`puppet`). So no step
that needs two people may be open to a puppet. tests/operators/sign_in/test_reach.py computes that.
"""

from collections.abc import Collection
from dataclasses import dataclass
from enum import StrEnum


class Reach(StrEnum):
    """A thing that needs a right or a second person."""

    CODES = "codes in clear"
    KEYS = "a merchant's key"
    MONEY = "money above the limits"
    LIMITED_MONEY = "money within the limits"
    PRICES = "low prices"
    LIMITED_PRICES = "prices within the limit"
    VOID = "codes voided for ever"
    PEOPLE = "another person's sign-in"
    RIGHTS = "more rights"
    SILENCE = "silence in the audit trail"


@dataclass(frozen=True)
class Step:
    """The consequences of one permission.

    alone: what one person reaches with it.
    together: what two people reach, of whom the second has a permission of `second`; none means
        the same permission.
    """

    alone: frozenset[Reach] = frozenset()
    together: frozenset[Reach] = frozenset()
    second: tuple[str, ...] = ()


def alone(*reach: Reach) -> Step:
    """A step of one person."""
    return Step(alone=frozenset(reach))


def together(*reach: Reach, second: tuple[str, ...] = ()) -> Step:
    """A step of two people."""
    return Step(together=frozenset(reach), second=second)


NOTHING = Step()
GIVES_RIGHTS = Step(
    alone=frozenset({Reach.RIGHTS}), together=frozenset({Reach.RIGHTS, Reach.PEOPLE})
)
# The forms and files of prices. Two people with any of them set a low price, and one of them other
# prices (operators/imports/low_prices.py).
PRICE_RIGHTS = (
    "catalogue.add_product",
    "catalogue.change_product",
    "catalogue.change_shelf",
    "catalogue.change_pricelistentry",
    "catalogue.assign_pricelist",
    "imports.import_catalogue",
    "topups.add_topupproduct",
    "topups.change_topupproduct",
)
SETS_PRICES = Step(
    alone=frozenset({Reach.LIMITED_PRICES}),
    together=frozenset({Reach.PRICES}),
    second=PRICE_RIGHTS,
)
# A lower rate lowers the cost of codes, and so allows a lower price.
RATE_RIGHTS = (
    "figures.add_exchangerate",
    "figures.change_exchangerate",
    "figures.delete_exchangerate",
)
# Permissions to view are not here: no page that only shows has a secret.
STEPS = (
    {
        "accounts.add_account": NOTHING,
        "accounts.change_account": NOTHING,
        # Its address, footer and logo could tell merchants to send their money elsewhere.
        "accounts.change_owncompany": together(Reach.MONEY),
        "accounts.add_apiclient": NOTHING,
        "accounts.change_apiclient": NOTHING,  # not the account of a client with live keys
        "accounts.add_apikey": together(Reach.KEYS),
        "accounts.change_apikey": NOTHING,  # only revokes
        "audit.export_lists": NOTHING,
        "auth.add_user": GIVES_RIGHTS,
        "auth.change_user": GIVES_RIGHTS,
        "auth.add_group": GIVES_RIGHTS,
        "auth.change_group": GIVES_RIGHTS,
        "auth.delete_group": NOTHING,
        "sign_in.manage_staff": GIVES_RIGHTS,
        "cases.answer_case": together(Reach.LIMITED_MONEY, second=("wallets.move_money",)),
        # Moves a case's code to a merchant, and shows it to nobody here.
        "cases.replace_code": alone(Reach.LIMITED_MONEY),
        "catalogue.reveal_vouchercode": alone(Reach.CODES),
        "catalogue.change_batch": together(Reach.PRICES),  # a lower cost allows a lower price
        "catalogue.hold_codes": together(Reach.VOID),
        "catalogue.add_category": NOTHING,
        "catalogue.change_category": NOTHING,
        "catalogue.delete_category": NOTHING,
        "catalogue.delete_product": NOTHING,
        "catalogue.add_variation": NOTHING,  # without a price
        "catalogue.change_variation": NOTHING,
        "catalogue.delete_variation": NOTHING,
        "catalogue.add_shelf": NOTHING,  # no form adds one
        "catalogue.delete_shelf": NOTHING,
        "catalogue.add_pricelist": NOTHING,  # without prices
        "catalogue.change_pricelist": NOTHING,  # its name
        "catalogue.add_referencelink": NOTHING,
        "catalogue.change_referencelink": NOTHING,
        "catalogue.delete_referencelink": NOTHING,
        "figures.add_stockthreshold": NOTHING,
        "figures.change_stockthreshold": NOTHING,
        "figures.delete_stockthreshold": NOTHING,
        "imports.import_codes": together(Reach.PRICES),  # codes that cost more than their price
        "merchants.add_emailedreport": NOTHING,
        "merchants.delete_emailedreport": NOTHING,
        "merchants.add_invitation": together(Reach.KEYS),
        "merchants.change_membership": together(Reach.PEOPLE),  # removes a second factor
        "telegram.announce_again": NOTHING,
        "telegram.change_platformsettings": NOTHING,
        "telegram.add_announcementroute": NOTHING,
        "telegram.change_announcementroute": NOTHING,
        "telegram.delete_announcementroute": NOTHING,
        "telegram.delete_telegramlink": NOTHING,
        "topups.fulfil": NOTHING,  # at most a refund of the order's own price
        "topups.decide_review": NOTHING,
        "topups.delete_topupproduct": NOTHING,
        "upkeep.run_reconcile": NOTHING,
        "wallets.add_wallet": NOTHING,
        "wallets.move_money": Step(
            alone=frozenset({Reach.LIMITED_MONEY}),
            together=frozenset({Reach.MONEY}),
            second=("wallets.approve_booking",),
        ),
        "wallets.approve_booking": together(Reach.MONEY, second=("wallets.move_money",)),
        "warnings.change_warningrule": NOTHING,
    }
    | dict.fromkeys(PRICE_RIGHTS, SETS_PRICES)
    | dict.fromkeys(RATE_RIGHTS, together(Reach.PRICES, second=RATE_RIGHTS))
    | {
        f"topups.{verb}_{model}": NOTHING
        for verb in ("add", "change", "delete")
        for model in ("topupfield", "topupfieldoption")
    }
    | {
        f"wallets.{verb}_{model}": together(Reach.MONEY)
        for verb in ("add", "change", "delete")
        for model in ("bookinglimit", "bankdetails")
    }
)
# What no one person may reach alone, from any built-in role.
FORBIDDEN = set(Reach) - {Reach.LIMITED_MONEY, Reach.LIMITED_PRICES, Reach.RIGHTS}


def second_of(permission: str) -> tuple[str, ...]:
    """The permissions of which the second person of a step needs one."""
    return STEPS[permission].second or (permission,)


def _needs_two() -> frozenset[str]:
    steps = {name for name, step in STEPS.items() if step.alone}
    seconds = {one for name, step in STEPS.items() if step.together for one in second_of(name)}
    return frozenset(steps | seconds)


# The permissions that two administrators together give: each that leads further alone, and each of
# a second person. A person with a puppet would otherwise be both people.
NEEDS_TWO = _needs_two()


def step_of(permission: str) -> Step:
    """The step of the permission. Raises KeyError for one that is not in the table."""
    return NOTHING if permission.partition(".")[2].startswith("view_") else STEPS[permission]


def reach_of(
    permissions: Collection[str], needs_two: Collection[str] = NEEDS_TWO
) -> frozenset[Reach]:
    """The things that one person with these permissions reaches alone, in any number of steps."""
    own = set(permissions)
    reach = frozenset[Reach]().union(*(step_of(one).alone for one in own))
    if Reach.RIGHTS not in reach:
        return reach
    puppet = set(STEPS) - set(needs_two)
    reach |= frozenset[Reach]().union(*(step_of(one).alone for one in puppet))
    # Two people: the person and a puppet, or two puppets.
    for one in own | puppet:
        step = step_of(one)
        if step.together and puppet.intersection(second_of(one)):
            reach |= step.together
        if step.together and one in puppet and own.intersection(second_of(one)):
            reach |= step.together
    return reach
