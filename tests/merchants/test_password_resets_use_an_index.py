"""Anybody may ask for some emails, so counting the earlier ones must stay cheap."""

import json
from datetime import timedelta

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from merchants.email.outbox import has_had
from merchants.models import Email, EmailKind

pytestmark = pytest.mark.django_db

DAY = timedelta(days=1)


@pytest.mark.parametrize("kind", [EmailKind.PASSWORD_RESET, EmailKind.INVITATION])
def test_the_count_does_not_scan_old_emails(kind: EmailKind) -> None:
    Email.objects.bulk_create(
        Email(kind=kind, to=f"name{number}@merchant.example")
        for kind in EmailKind
        for number in range(3000)
    )
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE merchants_email")
        with CaptureQueriesContext(connection) as queries:
            assert has_had(kind=kind, to="name7@merchant.example", limit=1, within=DAY)
        cursor.execute(f"EXPLAIN (FORMAT JSON) {queries[0]['sql']}")
        (plan,) = cursor.fetchone()

    assert "Seq Scan" not in json.dumps(plan)
