"""A second merchant, in every test database before the first test.

It has the same shapes of everything that a test's own merchant has, and the lowest ids. A query
that forgets its filter finds the neighbour's rows, mostly before the right ones, and a test fails.

The rows are written once per test process. Tests that roll back leave them alone; after a test that
commits, `tests/flushing.py` copies them back. Nothing of the neighbour is late: no sweep finds work
in it, no list of the catalogue shows its products, and `reconcile` finds nothing.

A test finds the rows that it made itself with `ours(Model)`. A test of something that looks at all
merchants at once (the desk, a sweep) uses the fixture `alone`, which removes the neighbour.
"""

from decimal import Decimal
from functools import cache
from typing import Any, TypeVar

from django.contrib.sessions.backends.db import SessionStore
from django.db import transaction
from django.db.models import F, Model, QuerySet
from django.utils import timezone
from ulid import ULID

from accounts.models import Account, ApiClient, ApiKey, ClientUse
from catalogue.models import ReferenceLink, Shelf, VoucherCode
from idempotency.models import IdempotencyRecord
from merchants.email.secret_links import INVITATION_VALID_FOR
from merchants.models import (
    BalanceAlert,
    Email,
    EmailKind,
    Invitation,
    MemberSession,
    Role,
)
from operators.telegram.models import Announcement, AnnouncementState
from orders.codes import codes_mac
from orders.models import ClientCounter, Order
from tests.factories import (
    NEIGHBOUR,
    make_account,
    make_category,
    make_client,
    make_key,
    make_operator,
    make_product,
    make_topup_product,
    make_variation,
    own_shelf,
)
from tests.flushing import keep_rows, kept_keys
from tests.merchants.people import make_member
from topups.models import Channel, FailureReason, Fulfilment, FulfilmentEvent, TopUpProduct
from wallets.models import COUNTERPARTS, EntryKind, LedgerEntry

PRICE = Decimal("3.21")
# The moves of one fulfilment for each way to stand or end, with the state that each leads to.
HISTORIES = [
    [("open", "pending")],
    [("open", "pending"), ("claim", "processing")],
    [("open", "pending"), ("claim", "processing"), ("review", "pending_review")],
    [("open", "pending"), ("claim", "processing"), ("complete", "completed")],
    [("open", "pending"), ("reject", "failed"), ("refund", "failed")],
    [
        ("open", "pending"),
        ("claim", "processing"),
        ("review", "pending_review"),
        ("reject_unrefunded", "failed"),
    ],
]


Row = TypeVar("Row", bound=Model)


def ours(model: type[Row]) -> QuerySet[Row]:
    """The rows that the test made: all but the neighbour's."""
    return model._default_manager.exclude(pk__in=_theirs(model))


@cache
def _theirs(model: type[Model]) -> list[Any]:
    return kept_keys(model._meta.db_table, str(model._meta.pk.column))


def settle_neighbour() -> None:
    """Writes the neighbour's rows into a new test database, and has each flush put them back."""
    with transaction.atomic():
        make_neighbour()
        keep_rows()


def make_neighbour() -> None:
    """Writes the neighbour's rows."""
    account = make_account(balance="7777.77")
    Account.objects.filter(pk=account.pk).update(name=NEIGHBOUR)
    client = make_client(account, allowed_networks=["203.0.113.0/24"], rate_limit_per_minute=7)
    disabled = make_client(account, enabled=False)
    make_key(client)
    make_key(disabled)
    ApiKey.objects.filter(client=disabled).update(revoked_at=timezone.now())
    ClientUse.objects.create(client=client, day=timezone.now().date(), requests=777)
    shelves = _make_shelves(account)
    orders = _make_orders(client, shelves[0], _make_fulfilments(account))
    IdempotencyRecord.objects.create(
        client=client,
        key="key-1",
        fingerprint=bytes(32),
        order_reference=orders[0].reference,
        bought_at=timezone.now(),
    )
    _make_people(account)


def _make_shelves(account: Account) -> list[Shelf]:
    """Shelves of a product that is switched off, each with a price, codes and a reference."""
    product = make_product(
        name="Their product", active=False, category=make_category(active=False), codes=3
    )
    shelves = [own_shelf(product), *(make_variation(product, codes=1).shelf for _ in range(3))]
    ReferenceLink.objects.bulk_create(
        ReferenceLink(account=account, reference=f"spare-{number}", shelf=shelf)
        for number, shelf in enumerate(shelves)
    )
    return shelves


def _make_fulfilments(account: Account) -> list[Fulfilment]:
    """One top-up with each of HISTORIES; a delivered one was announced."""
    now, operator = timezone.now(), make_operator().user
    product = make_topup_product(name="Their top-up", published=False)
    made = [_fulfilment(account, product, history[-1][1]) for history in HISTORIES]
    for fulfilment, history in zip(made, HISTORIES, strict=True):
        moves = [move for move, _ in history]
        if fulfilment.status == "processing":
            fulfilment.claimed_by, fulfilment.claimed_at = operator, now
        if fulfilment.status in ("completed", "failed"):
            fulfilment.closed_at = now
        if fulfilment.status == "failed":
            fulfilment.failure_reason = FailureReason.FULFILMENT_FAILED
        if "refund" in moves:
            fulfilment.refund_due_at = fulfilment.refunded_at = now
    Fulfilment.objects.bulk_create(made)
    for fulfilment, history in zip(made, HISTORIES, strict=True):
        came_from = None
        for move, status in history:
            event = FulfilmentEvent.objects.create(
                fulfilment=fulfilment, move=move, from_status=came_from, to_status=status,
                actor=operator.username, channel=Channel.ADMIN,
            )  # fmt: skip
            came_from = status
        if fulfilment.status == "completed":
            Announcement.objects.create(
                fulfilment=fulfilment, state=AnnouncementState.ENDED, chat_id=-7, message_id=7,
                announced_at=now, message_version=event.pk,
            )  # fmt: skip
    return made


def _fulfilment(account: Account, product: TopUpProduct, status: str) -> Fulfilment:
    return Fulfilment(
        order_reference=str(ULID()), account=account, product=product, player_id="0012345",
        amount=PRICE, currency="USD", takes_stock=False, status=status,
    )  # fmt: skip


def _make_orders(client: ApiClient, shelf: Shelf, fulfilments: list[Fulfilment]) -> list[Order]:
    """One order of two codes, and one of each top-up, with their debits and refunds."""
    terms = {"client": client, "units_per_sale": 1, "unit_price": PRICE, "currency": "USD"}
    reference, codes = str(ULID()), list(shelf.codes.order_by("position")[:2])
    digests = b"".join(bytes(code.digest) for code in codes)
    orders = Order.objects.bulk_create(
        [
            Order(
                reference=reference, number=1, shelf=shelf, quantity=2, total_price=2 * PRICE,
                codes_mac=codes_mac(client.pk, reference, digests), **terms,
            ),
            *(
                Order(
                    reference=fulfilment.order_reference, number=number, fulfilment=fulfilment,
                    quantity=1, total_price=PRICE, **terms,
                )
                for number, fulfilment in enumerate(fulfilments, 2)
            ),
        ]
    )  # fmt: skip
    ClientCounter.objects.create(client=client, orders=len(orders))
    VoucherCode.objects.filter(pk__in=[code.pk for code in codes]).update(order_id=orders[0].pk)
    Shelf.objects.filter(pk=shelf.pk).update(available_stock=F("available_stock") - 2)
    debits = [_entry(order, EntryKind.PURCHASE, -order.total_price) for order in orders]
    refunds = [
        _entry(order, EntryKind.REFUND, order.total_price)
        for order in orders
        if order.fulfilment and order.fulfilment.refunded
    ]
    LedgerEntry.objects.bulk_create([*debits, *refunds])
    return orders


def _entry(order: Order, kind: EntryKind, amount: Decimal) -> LedgerEntry:
    return LedgerEntry(
        wallet_id=order.client.account_id, kind=kind, counterpart=COUNTERPARTS[kind],
        amount=amount, balance_after=0, order_reference=order.reference,
        actor=f"client:{order.client_id}",
    )  # fmt: skip


def _make_people(account: Account) -> None:
    """A member of each role, one of them signed in, a former member, and an open invitation."""
    members = [make_member(account, role, email=f"{role}@neighbour.example") for role in Role]
    former = make_member(account, Role.OWNER, email="former@neighbour.example")
    former.user.is_active = False
    former.user.save()
    owner = members[0]
    session = SessionStore()
    session.create()
    MemberSession.objects.create(session_id=str(session.session_key), user=owner.user)
    Invitation.objects.create(
        account=account, email="invited@neighbour.example", role=Role.DEVELOPER,
        invited_by=owner.user, expires_at=timezone.now() + INVITATION_VALID_FOR,
    )  # fmt: skip
    Email.objects.create(kind=EmailKind.CHANGE, to=owner.user.email, sent_at=timezone.now())
    BalanceAlert.objects.create(account=account, level=Decimal("10.00"))
