"""The finders of `topups` for the search fields: orders at the desk, and top-up products."""

from typing import TypeVar

from django.db.models import Q, QuerySet

from core.backoffice.declarations import Finder
from core.backoffice.search import MAX_HITS, by_name, newest_first
from core.database.columns import ORDER_REFERENCE_LENGTH
from core.texts import lazy
from topups.models import DELETED_PLAYER_ID, Fulfilment, TopUpProduct

Row = TypeVar("Row")


def with_player(rows: QuerySet[Fulfilment, Row], player_id: str) -> QuerySet[Fulfilment, Row]:
    """The top-ups for this player id, as it is written."""
    return rows.none() if player_id == DELETED_PLAYER_ID else rows.filter(player_id=player_id)


def _find_at_desk(text: str) -> list[Fulfilment]:
    rows = Fulfilment.objects.select_related("product", "account")
    matches = list(with_player(rows, text).order_by(newest_first())[:MAX_HITS])
    if len(text) == ORDER_REFERENCE_LENGTH:
        matches += rows.filter(Q(order_reference=text.upper()))
    return matches


def _describe(fulfilment: Fulfilment) -> tuple[str, str]:
    words = (fulfilment.product, fulfilment.account, fulfilment.get_status_display())
    return fulfilment.order_reference, ", ".join(str(word) for word in words)


FINDERS = [
    Finder(lazy("Top-up"), Fulfilment, _find_at_desk, _describe),
    Finder(
        lazy("Top-up product"), TopUpProduct, lambda text: by_name(TopUpProduct.objects.all(), text)
    ),
]
