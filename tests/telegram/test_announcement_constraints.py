"""The database refuses settings, routes and announcements that contradict themselves."""

from datetime import time
from typing import Any

import pytest
from django.db import IntegrityError, transaction

from operators.telegram.models import Announcement, AnnouncementRoute, PlatformSettings
from tests.factories import make_category, make_topup_product
from tests.telegram.announcing import Place, row_of, show

pytestmark = pytest.mark.django_db


@pytest.mark.parametrize(
    "fields",
    [
        {"pk": 2},
        {"topic_id": 5},
        {"chat_id": -1, "topic_id": 1},
        {"quiet_from": time(1)},
        {"quiet_until": time(1)},
        {"quiet_from": time(1), "quiet_until": time(1)},
        {"repeat_minutes": 0},
    ],
)
def test_contradictory_settings_are_refused(db: None, fields: Any) -> None:
    with pytest.raises(IntegrityError), transaction.atomic():
        PlatformSettings.objects.create(**fields)


def test_contradictory_routes_are_refused(db: None) -> None:
    product, category = make_topup_product(), make_category()
    AnnouncementRoute.objects.create(product=product, chat_id=-1)
    for fields in (
        {},
        {"product": make_topup_product(), "category": category},
        {"product": product},
        {"category": category, "topic_id": 1},
    ):
        with pytest.raises(IntegrityError), transaction.atomic():
            AnnouncementRoute.objects.create(chat_id=-1, **fields)


def test_second_row_or_shared_message_is_refused(place: Place) -> None:
    order, other = place.order(), place.order()
    show(order)
    row = row_of(order)
    for change in (
        {"state": "announced", "message_id": None},
        {"state": "sending", "busy_until": None},
        {"state": "nonsense"},
    ):
        with pytest.raises(IntegrityError), transaction.atomic():
            Announcement.objects.filter(pk=row.pk).update(**change)
    with pytest.raises(IntegrityError), transaction.atomic():
        Announcement.objects.create(fulfilment=order)
    with pytest.raises(IntegrityError), transaction.atomic():
        Announcement.objects.filter(fulfilment=other).update(
            chat_id=row.chat_id, message_id=row.message_id
        )
