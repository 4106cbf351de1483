"""Low prices, and lower exchange rates of costs, wait for a second person, whatever asks for them.

Two people do the same within a day, as for changes of rights (operators/sign_in/second_person.py).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Any

from django.conf import settings
from django.contrib import messages
from django.contrib.auth.models import User
from django.db import OperationalError, connection, transaction
from django.db.models import QuerySet
from django.forms import Form
from django.http import HttpRequest
from django.utils.html import escape, format_html
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _
from psycopg.errors import LockNotAvailable, QueryCanceled
from structlog.contextvars import bind_contextvars, bound_contextvars

from accounts.models import Account
from catalogue.models import PriceListEntry, Shelf
from catalogue.stock.batches import BatchDetails
from core.backoffice.staff import names_of_staff_who_may
from core.database.functions import database_now, name_asker
from core.inputs import InputProblem
from core.texts import lazy
from figures.low_prices import (
    as_data,
    earlier_lists,
    find_low_prices,
    keep_agreement,
    keep_earlier_list,
    keep_earlier_terms,
    lower_rates,
    prices_below,
    read_rates,
)
from figures.price_lines import (
    Key,
    PriceChange,
    PriceWatch,
    Terms,
    changes_of_choice,
    watch_prices,
)
from operators.frame.base import staff_of
from operators.sign_in.asked_changes import (
    Price,
    describe_price,
    end_link,
    page_data,
    right_to_change,
)
from operators.sign_in.models import TwoPersonChange
from operators.sign_in.second_person import ask_or_agree, waiting_changes

SHOWN = 5  # prices in one message
KEPT = 100  # prices of which a request has the data
ANOTHER_MUST_AGREE = lazy(
    "Another person must agree. A price that falls by more than %(percent)s %%, or is below the"
    " cost of the codes in stock, needs a second person. Nothing is saved yet: the request waits"
    " for a day on the first page of those who may agree."
)
PRICES = "prices"  # how a request about regular prices begins
ASSIGN = "catalogue.assign_pricelist"  # the right to choose the list of an account
MUST_AGREE = lazy(
    "Another person must agree: a price that falls by more than %(percent)s %%, or is below the"
    " cost of the codes in stock, needs a second person. These may: %(people)s."
)
# Of a request, whose column has 500; of a longer one, only the beginning is stored.
LENGTH = 440


class LowPrices(InputProblem):
    """Prices or exchange rates that need a second person. Nothing was changed. `low`: the first of
    them. `what`, `right`, `data`: the request for a second person."""

    def __init__(self, message: str, waits: _NotAgreed) -> None:
        super().__init__(message)
        self.args = (message,)  # a SafeString keeps its links
        self.low, self.what = waits.low[:SHOWN], waits.what
        self.right, self.data = waits.right, waits.data


class PricesBusy(InputProblem):
    """Another change of prices held a lock for longer than `lock_timeout`. Nothing was changed."""


class TooManyPrices(InputProblem):
    """The prices in all lists could not be compared in time. Nothing was changed."""


@dataclass
class _NotAgreed(Exception):
    low: Sequence[Price]
    what: str
    right: str
    data: dict[str, Any]


@dataclass
class PriceRequest:
    """A change of prices. `words` are what it is about, as a request for a second person begins.
    `terms` are those of new entries of a list, for pages (operators/sign_in/asked_changes.py)."""

    words: str
    watched: PriceWatch
    foreseen: tuple[list[PriceChange], list[PriceChange]] = ([], [])
    actor: User | None = None
    terms: dict[str, Any] = field(default_factory=dict)
    asker: str = ""  # who asked for its low prices; empty without a second person

    def foresee(self, terms: dict[Key, Terms]) -> None:
        """Computes which prices change, and which of them are low, before the rows are locked.

        `terms` are those after the change. Another change of prices cannot come between.
        """
        changes = self.watched.foresee(terms)
        low = find_low_prices(changes, self.watched.since, made=False)
        self.foreseen = changes, low
        self.name_asker(low)

    def name_asker(self, low: Sequence[PriceChange]) -> None:
        """Lets the audit entries of the change name who asked for its low prices."""
        self.asker = _name_asker(self.words, low, self.actor)

    def low_prices(self) -> list[PriceChange]:
        """The low prices of the change that was made."""
        changes = self.watched.changes()
        keep_earlier_terms(self.watched)
        if changes is self.foreseen[0]:
            return self.foreseen[1]
        return find_low_prices(changes, self.watched.since)


def _name_asker(words: str, low: Sequence[PriceChange], actor: User | None) -> str:
    if not low or actor is None:
        return ""
    what = _what(words, [as_data(one)["words"] for one in low])
    asked = waiting_changes().filter(what=what, about=None).exclude(asked_by=actor).first()
    if asked is None:
        return ""
    asker = str(asked.asked_by)
    bind_contextvars(agreement=asked_and_confirmed(asked.asked_by, actor))
    name_asker(asker)
    return asker


def asked_and_confirmed(asker: User, actor: User) -> str:
    """The note of an audit entry about what two people did."""
    return f"Asked by {asker}, confirmed by {actor}"


def rehearse(watched: PriceWatch, change: Callable[[], object]) -> dict[Key, Terms]:
    """The terms after a change, which is undone: purchases of its rows do not wait while the prices
    in all lists are computed."""
    with transaction.atomic():
        change()
        terms = watched.read_terms()
        transaction.set_rollback(True)
    return terms


@contextmanager
def two_people_set_low_prices(
    *rows: QuerySet[Any],
    actor: User | None,
    lists: Collection[int] = (),
    about: str = PRICES,
    right: str = "",
) -> Iterator[PriceRequest]:
    """Undoes the block and raises LowPrices if it sets a low price that nobody else asked for.

    `rows` are the shelves and top-up products that the block may change: their prices, quantity
    steps, categories and currencies. `right` is that of those who may agree; without it, they may
    change such rows. `lists` are the ids of the price lists whose entries it adds
    or ends. So a form or an import of a list is:

        with two_people_set_low_prices(lists=[price_list.pk], actor=user) as about:
            entry = add_price_entry(...)
            about.words = describe_entry(entry, start)

    It raises PricesBusy while another change of prices runs for long, and TooManyPrices.

    A second person's request has the same words and the same low prices: `about.words` names what
    the low prices do not show. The request of `actor` waits from then on. Without an actor, nobody
    can be asked. For a preview, use `watch_prices` (figures/price_lines.py) in a transaction that
    is rolled back.
    """
    with (
        _undo_without_agreement(actor=actor, message=_message_about_prices),
        bound_contextvars(agreement=""),
    ):
        lock_prices()
        name_asker("")
        watched = watch_prices(*rows, lists=lists)
        request = PriceRequest(about, watched, actor=actor)
        yield request
        low = request.low_prices()
        _require_agreement(
            list(map(as_data, low)),
            actor=actor,
            about=request.words,
            right=right or right_to_change(rows[0].model if rows else PriceListEntry),
            terms=request.terms,
        )
        keep_agreement(low)


@contextmanager
def two_people_choose_a_list(
    account: Account, price_list: int | None, *, actor: User
) -> Iterator[None]:
    """As `two_people_set_low_prices`, of the choice of a price list for an account."""
    with (
        _undo_without_agreement(actor=actor, message=_message_about_prices),
        bound_contextvars(agreement=""),
    ):
        lock_prices()
        account = Account.objects.get(pk=account.pk)
        before = account.price_list_id
        _changes, low, words = foresee_choice(account, price_list)
        _name_asker(words, low, actor)
        yield
        _require_agreement(
            list(map(as_data, low)),
            actor=actor,
            about=words,
            right=ASSIGN,
            account=account.pk,
            list=price_list,
        )
        if price_list != before:
            keep_earlier_list(account, before, low_prices=len(low))


def foresee_choice(
    account: Account, price_list: int | None
) -> tuple[list[PriceChange], list[PriceChange], str]:
    """The prices that differ with this list for the account, which of them are low, and the words
    of a request."""
    before, now = account.price_list_id, database_now()
    changes = changes_of_choice(currency=account.currency, old=before, new=price_list)
    low = find_low_prices(changes, now, earlier_lists(account), made=False)
    return changes, low, f"price list {price_list} in place of {before} for account {account.pk}"


@contextmanager
def two_people_lower_rates(*, actor: User | None, about: str = "exchange rates") -> Iterator[None]:
    """As `two_people_set_low_prices`, of exchange rates that convert the cost of codes.

    With a lower rate the codes seem to cost less, and one person could sell them below their cost.
    """
    with _undo_without_agreement(actor=actor, message=_message_about_rates):
        lock_prices()
        before = read_rates()
        yield
        low = [{"words": one} for one in lower_rates(before, read_rates())]
        _require_agreement(low, actor=actor, about=about, right="figures.change_exchangerate")


@contextmanager
def two_people_import_codes(
    shelf: Shelf, details: BatchDetails, *, actor: User, about: str
) -> Iterator[Callable[[], None]]:
    """As `two_people_set_low_prices`, of codes that cost more than their price.

    It yields a function. Call this when the codes are stored, just before they are for sale:
    changes of prices wait from then on.
    """

    def require(agreed: Collection[Price] = ()) -> list[dict[str, Any]]:
        below = prices_below(shelf, details.unit_cost, details.cost_currency)
        new = [one for one in below if one not in agreed]
        _require_agreement(new, actor=actor, about=about)
        return below

    def check_again() -> None:
        lock_prices()
        require(agreed)

    with _undo_without_agreement(actor=actor, message=_message_about_prices):
        agreed = require()
        yield check_again


def ask_to_import_codes(
    shelf: Shelf, details: BatchDetails, *, actor: User, about: str
) -> list[Price]:
    """Stores the request of `actor` if codes cost more than their price; returns those prices.
    Empty if nobody else is needed, or another person has asked."""
    below = prices_below(shelf, details.unit_cost, details.cost_currency)
    what = _what(about, [one["words"] for one in below])
    if not below or actor.is_superuser or _others_asked(what, actor):
        return []
    data = {"prices": below[:KEPT], "number": len(below)}
    with transaction.atomic():
        if ask_or_agree(what=what, about=None, actor=actor, data=data):
            transaction.set_rollback(True)  # a colleague asked meanwhile: the import agrees
            return []
    return list(below[:SHOWN])


def _others_asked(what: str, actor: User) -> bool:
    return waiting_changes().filter(what=what, about=None).exclude(asked_by=actor).exists()


def lock_prices() -> None:
    """Lets changes of prices wait for each other until the end of the transaction.

    Two small falls at once would otherwise both be compared with the price before. Purchases do not
    take the lock.
    """
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_xact_lock(hashtextextended('changes of prices', 0))")


@contextmanager
def changing_prices() -> Iterator[None]:
    """A transaction. Raises PricesBusy if it waits too long for a lock, and TooManyPrices if one of
    its statements takes too long."""
    try:
        with transaction.atomic():
            yield
    except OperationalError as error:
        if isinstance(error.__cause__, LockNotAvailable):
            raise _busy() from None
        if isinstance(error.__cause__, QueryCanceled):
            raise TooManyPrices(
                _(
                    "Nothing was changed. Too many prices in price lists would change at once."
                    " Change fewer prices at a time."
                )
            ) from None
        raise


@contextmanager
def _undo_without_agreement(
    *, actor: User | None, message: Callable[[Sequence[Price], User | None], str]
) -> Iterator[None]:
    """Undoes the block if `_require_agreement` in it fails. Then stores the request of `actor`.

    Raises PricesBusy if another person asked for the same after the block was undone. The next
    attempt agrees to their request and makes the change.
    """
    try:
        with changing_prices():
            yield
    except _NotAgreed as waits:
        with transaction.atomic():
            if actor and ask_or_agree(what=waits.what, about=None, actor=actor, data=waits.data):
                raise _busy() from None  # undoes the agreement
        raise LowPrices(message(waits.low, actor), waits) from None


def _require_agreement(
    low: Sequence[Price], *, actor: User | None, about: str, right: str = "", **data: Any
) -> None:
    """Ends the block of `_undo_without_agreement` unless another person asked for the same."""
    if not low:
        return
    what = _what(about, [one["words"] for one in low])
    if actor is None or not ask_or_agree(what=what, about=None, actor=actor):
        prices = {"prices": low[:KEPT], "number": len(low)}
        raise _NotAgreed(low, what, right, prices | data)


def keep_data(
    request: HttpRequest, low: LowPrices, form: Form | None = None
) -> QuerySet[TwoPersonChange]:
    """Keeps the page where a person asked for low prices: another one agrees to them there. `form`
    is that of the page. Returns the request."""
    own = waiting_changes().filter(what=low.what, about=None, asked_by=staff_of(request))
    own.update(right=low.right, data=low.data | page_data(request, form))
    return own


def keep_page(request: HttpRequest, low: LowPrices, form: Form | None = None) -> None:
    """As `keep_data`. Tells the person who may agree."""
    asker = staff_of(request)
    for change in keep_data(request, low, form):
        address, withdraw = end_link(change, asker)
        people = names_of_staff_who_may(low.right, asker.username) or _("nobody yet")
        link = format_html('<a href="{}" class="text-link">{}</a>', address, withdraw)
        messages.success(request, format_html(_("Sent to {}. {}"), people, link))


def _what(about: str, words: Sequence[str]) -> str:
    """The request for these low prices: all of it, or its beginning with a digest of all."""
    prices = "; ".join(words)
    what = f"{about}: {prices}"
    if len(what) <= LENGTH:
        return what
    digest = sha256(what.encode()).hexdigest()[:32]
    return f"{about[:150]}: {prices[:200]}… ({len(words)} in all), {digest}"


def _busy() -> PricesBusy:
    return PricesBusy(_("Prices are being changed now. Try again in a minute."))


def _message_about_prices(low: Sequence[Price], actor: User | None) -> str:
    prices = [one["words"] if actor is None else describe_price(one) for one in low[: SHOWN + 1]]
    values = {"percent": settings.PRICE_FALL_PERCENT, "prices": _first(prices)}
    if actor is None:
        return (
            _(
                "Nothing was changed. A price that falls by more than %(percent)s %%, or is below"
                " the cost of the codes in stock, needs two people. Have two members of staff set"
                " it in the back office, then run the command again. It concerns: %(prices)s"
            )
            % values
        )
    concerns = escape(_("It concerns: %(prices)s"))
    return SafeString(f"{escape(another_must_agree())} {concerns % values}")


def who_must_agree(low: Sequence[PriceChange], *, words: str, right: str, actor: User) -> str:
    """Tells before a change that its low prices need a second person, and who may agree; empty if
    nobody needs to, or another person has asked for the same. `words` are those of PriceRequest."""
    what = _what(words, [as_data(one)["words"] for one in low])
    if not low or actor.is_superuser or _others_asked(what, actor):
        return ""
    return name_approvers(right, actor)


def name_approvers(right: str, actor: User) -> str:
    """Tells who may agree to low prices of this person."""
    people = names_of_staff_who_may(right, actor.username) or _("nobody yet")
    return str(MUST_AGREE) % {"percent": settings.PRICE_FALL_PERCENT, "people": people}


def another_must_agree() -> str:
    """Tells the person who asked for low prices that they wait."""
    return str(ANOTHER_MUST_AGREE) % {"percent": settings.PRICE_FALL_PERCENT}


def _message_about_rates(low: Sequence[Price], actor: User | None) -> str:
    rates = _first([one["words"] for one in low])
    if actor is None:
        return _(
            "Nothing was changed. A lower exchange rate lowers the cost of codes, and needs two"
            " people. Have two members of staff change it in the back office. It concerns:"
            " %(rates)s"
        ) % {"rates": rates}
    return _(
        "Not saved yet. A lower exchange rate lowers the cost of codes, and needs a second"
        " person. Ask another member of staff to do the same within a day. It concerns:"
        " %(rates)s"
    ) % {"rates": rates}


def _first(low: Sequence[str]) -> str:
    return "; ".join(low[:SHOWN]) + ("; …" if len(low) > SHOWN else "")
