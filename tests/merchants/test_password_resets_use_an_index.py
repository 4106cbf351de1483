"""Anybody may ask for a reset, so counting the earlier ones must stay cheap."""

import json

import pytest
from django.db import connection

from merchants.models import Email, EmailKind
from merchants.people.password_resets import recent_reset_emails
from tests.merchants.people import make_member

pytestmark = pytest.mark.django_db


def test_the_count_does_not_scan_old_emails() -> None:
    user = make_member().user
    Email.objects.bulk_create(
        Email(kind=kind, to=user.email, about=user.pk + number)
        for kind in (EmailKind.CHANGE, EmailKind.PASSWORD_RESET)
        for number in range(3000)
    )
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE merchants_email")

    plan = json.loads(recent_reset_emails(user).explain(format="json"))

    assert "Seq Scan" not in json.dumps(plan)
