"""Anybody may ask for some emails, so counting the earlier ones must stay cheap."""

import json
from datetime import timedelta

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from merchants.email.outbox import has_received_limit
from merchants.models import Email, EmailKind

pytestmark = pytest.mark.django_db

DAY = timedelta(days=1)
# 3000 copies of one email for each kind, to different addresses.
COPIES = """
    INSERT INTO merchants_email
    SELECT (jsonb_populate_record(email, jsonb_build_object(
               'id', nextval(pg_get_serial_sequence('merchants_email', 'id')),
               'kind', each, 'to', 'name' || number || '@merchant.example'))).*
      FROM merchants_email email, unnest(%s::text[]) each, generate_series(1, 2999) number
     WHERE email.id = %s
"""


@pytest.mark.parametrize("kind", [EmailKind.PASSWORD_RESET, EmailKind.INVITATION])
def test_the_count_does_not_scan_old_emails(kind: EmailKind) -> None:
    first = Email.objects.create(kind=kind, to="name0@merchant.example")
    with connection.cursor() as cursor:
        cursor.execute(COPIES, [list(EmailKind), first.pk])
        cursor.execute("ANALYZE merchants_email")
        with CaptureQueriesContext(connection) as queries:
            assert has_received_limit(kind=kind, to="name7@merchant.example", limit=1, within=DAY)
        cursor.execute(f"EXPLAIN (FORMAT JSON) {queries[0]['sql']}")
        (plan,) = cursor.fetchone()

    assert "Seq Scan" not in json.dumps(plan)
