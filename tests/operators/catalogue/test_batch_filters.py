"""The list of batches finds those with codes left, those that expire soon, and those without a
cost."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.utils import timezone

from catalogue.models import Batch, Shelf
from figures.models import DailyStock
from tests.factories import make_product, own_shelf
from tests.operators.back_office import list_url, signed_in, text_of, url

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("alone")]


def test_batches_are_found_by_what_is_left_expiry_and_cost() -> None:
    today = datetime.now(UTC).date()
    soon, sold = today + timedelta(days=20), today + timedelta(days=5)
    facts: dict[str, dict[str, Any]] = {
        "left": {"expires_on": soon, "unit_cost": 2, "cost_currency": "USD"},
        "sold": {"expires_on": sold},
        "late": {"expires_on": today + timedelta(days=31)},
        "past": {"expires_on": today - timedelta(days=1)},
        "back": {"taken_back_at": timezone.now()},
        "new": {},
    }
    shelf = own_shelf(make_product(codes=1))
    batches = {}
    for number, (name, more) in enumerate(facts.items(), 10**9):
        batches[name] = Batch.objects.create(
            shelf=shelf,
            first_code=number,
            last_code=number,
            file_digest=b"digest",
            imported_at=timezone.now() - timedelta(days=0 if name == "new" else 9),
            **more,
        )
    DailyStock.objects.all().delete()
    for name, days, codes in (("sold", 2, 7), ("left", 1, 3), ("late", 1, 1), ("sold", 1, 0)):
        DailyStock.objects.create(
            day=today - timedelta(days=days), shelf=shelf, batch=batches[name], codes=codes
        )
    # Codes that were imported before there were batches have none.
    DailyStock.objects.create(day=today - timedelta(days=1), shelf=shelf, batch=None, codes=9)
    browser = signed_in()

    def found(**query: str) -> set[str]:
        rows = browser.get(list_url(Batch, **query)).context["cl"].result_list
        names = {batch.pk: name for name, batch in batches.items()}
        return {names[row.pk] for row in rows}

    assert found() == set(facts)
    shown = browser.get(list_url(Batch)).context["cl"].result_list
    left = {row.pk: row.counted for row in shown}
    assert [left[batches[name].pk] for name in ("left", "sold", "new")] == [3, 0, None]
    assert list_url(Batch, shelf__id__exact=shelf.pk) in text_of(browser.get(url(shelf)))
    assert found(left="some") == {"left", "late", "new"}
    assert found(left="none") == {"sold", "past", "back"}
    assert found(expires="soon") == {"left"}
    assert found(expires="passed") == {"past"}
    assert found(expires="never") == {"back", "new"}
    assert found(cost="none") == set(facts) - {"left"}
    assert found(cost="entered") == {"left"}
    DailyStock.objects.all().delete()
    assert found(left="some") == set(facts) - {"back"}
    Shelf.objects.filter(pk=shelf.pk).update(available_stock=0)
    assert found(left="some") == set()
