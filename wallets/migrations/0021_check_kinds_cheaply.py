from pathlib import Path

from django.contrib.postgres.operations import AddConstraintNotValid
from django.db import migrations, models
from django.db.models import Func

from core.database.migrations import install_sql


class Migration(migrations.Migration):
    """The rule of an entry's kind becomes a function (wallets/sql/kinds.sql)."""

    dependencies = [("wallets", "0020_check_reasons")]
    operations = [
        *install_sql(
            Path(__file__).parents[1] / "sql",
            {"kinds.sql": "6dad8cb33af156ed30dc5a3290dd893e49d229862622817037c03062aae6394f"},
        ),
        AddConstraintNotValid(
            model_name="ledgerentry",
            constraint=models.CheckConstraint(
                name="wallets_entry_agrees_with_its_kind",
                condition=Func(
                    *("kind", "counterpart", "amount", "order_reference", "booking_reference"),
                    function="wallets_agrees_with_kind",
                    output_field=models.BooleanField(),
                ),
            ),
        ),
        migrations.RemoveConstraint(
            model_name="ledgerentry", name="wallets_entry_kind_and_sign_agree"
        ),
    ]
