"""A low price waits for a second person, whatever file or form asks for it.

Two people do the same within a day, as for changes of rights (operators/sign_in/second_person.py).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from hashlib import sha256
from typing import Any

from django.conf import settings
from django.contrib.auth.models import User
from django.db import transaction
from django.db.models import QuerySet
from django.utils.translation import gettext as _

from core.inputs import InputProblem
from figures.low_prices import find_low_prices, read_prices
from operators.sign_in.second_person import ask_or_agree

SHOWN = 5  # prices in one message
LENGTH = 440  # of a request, whose column has 500; a longer one is a digest


class LowPrices(InputProblem):
    """Prices that need a second person. Nothing was changed. `low`: the first of them."""

    def __init__(self, message: str, low: Sequence[str]) -> None:
        super().__init__(message)
        self.low = list(low)


class _NotAgreed(Exception):
    def __init__(self, low: list[str], about: str) -> None:
        super().__init__(about)
        self.low, self.about = low, about


@contextmanager
def two_people_set_low_prices(*rows: QuerySet[Any], actor: User | None) -> Iterator[None]:
    """Undoes the block and raises LowPrices if it sets a low price that nobody else asked for.

    `rows` are the shelves and top-up products that the block may change. The request of `actor`
    waits from then on. Without an actor, nobody can be asked.
    """
    with undoing(actor=actor):
        before = read_prices(*rows)
        yield
        agree(find_low_prices(before, read_prices(*rows)), actor=actor)


@contextmanager
def undoing(*, actor: User | None) -> Iterator[None]:
    """Undoes the block if `agree` in it fails, and then stores the request of `actor`."""
    try:
        with transaction.atomic():
            yield
    except _NotAgreed as waits:
        if actor is not None:
            ask_or_agree(what=waits.about, about=None, actor=actor)
        raise LowPrices(_message(waits.low, actor), waits.low[:SHOWN]) from None


def agree(low: Sequence[str], *, actor: User | None, about: str = "prices") -> None:
    """Ends the block around it (`undoing`) unless another person asked for the same prices."""
    if not low:
        return
    what = f"{about}: {'; '.join(low)}"
    if len(what) > LENGTH:
        what = f"{len(low)} {about}"[:LENGTH] + f", {sha256(what.encode()).hexdigest()[:32]}"
    if actor is None or not ask_or_agree(what=what, about=None, actor=actor):
        raise _NotAgreed(list(low), what)


def _message(low: list[str], actor: User | None) -> str:
    prices = "; ".join(low[:SHOWN]) + ("; …" if len(low) > SHOWN else "")
    values = {"percent": settings.PRICE_FALL_PERCENT, "prices": prices}
    if actor is None:
        return (
            _(
                "Nothing was changed. A price that falls by more than %(percent)s %%, or is below"
                " the cost of the codes in stock, needs two people. Have two members of staff set"
                " it in the back office, then run the command again. It concerns: %(prices)s"
            )
            % values
        )
    return (
        _(
            "Not saved yet. A price that falls by more than %(percent)s %%, or is below the cost of"
            " the codes in stock, needs a second person. Ask another member of staff to do the same"
            " within a day. It concerns: %(prices)s"
        )
        % values
    )
