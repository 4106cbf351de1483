from django.contrib.postgres.operations import AddConstraintNotValid
from django.db import migrations, models


class Migration(migrations.Migration):
    """The chain covers the reason of an entry with a booking reference (wallets/sql/post_entry.sql)."""

    dependencies = [("wallets", "0018_hash_reasons")]
    operations = [
        AddConstraintNotValid(
            model_name="ledgerentry",
            constraint=models.CheckConstraint(
                condition=models.Q(reason=None) | models.Q(booking_reference__isnull=False),
                name="wallets_entry_reason_is_of_a_booking",
            ),
        ),
    ]
