"""Old bookings get their keys. Of bookings whose references differ only in case or punctuation, the
first one gets the key."""

from typing import Any

from django.db import migrations

BATCH = 5000  # bookings in one statement
# The index of booking references finds the bookings without a walk past every purchase.
NEXT = """
    WITH batch AS (
        SELECT id, booking_reference FROM wallets_ledgerentry
         WHERE booking_reference > %s ORDER BY booking_reference LIMIT %s
    ), keyed AS (
        INSERT INTO wallets_bookingkey (key, entry_id)
        SELECT DISTINCT ON (wallets_booking_key(booking_reference))
               wallets_booking_key(booking_reference), id
          FROM batch
         ORDER BY wallets_booking_key(booking_reference), id
        ON CONFLICT (key) DO UPDATE SET entry_id = excluded.entry_id
         WHERE excluded.entry_id < wallets_bookingkey.entry_id
    )
    SELECT max(booking_reference) FROM batch
"""


def add_keys(apps: Any, editor: Any) -> None:
    with editor.connection.cursor() as cursor:
        last = ""
        while last is not None:
            cursor.execute(NEXT, [last, BATCH])
            (last,) = cursor.fetchone()


class Migration(migrations.Migration):
    atomic = False
    dependencies = [
        ("wallets", "0005_compare_references"),
    ]
    operations = [migrations.RunPython(add_keys, migrations.RunPython.noop)]
