"""Checks what 0003 added, and builds the index of codes in stock, while purchases go on."""

from django.db import migrations, models

from core.database.migrations import AddIndexConcurrently


class Migration(migrations.Migration):
    atomic = False
    dependencies = [("catalogue", "0003_code_holds")]

    operations = [
        # Purchases go on, but reading every code may take longer than the service's timeout.
        migrations.RunSQL(
            [
                "SET statement_timeout = 0",
                "ALTER TABLE catalogue_vouchercode"
                " VALIDATE CONSTRAINT catalogue_vouchercode_hold_fk",
                "ALTER TABLE catalogue_vouchercode"
                " VALIDATE CONSTRAINT catalogue_code_sold_is_not_held",
                "RESET statement_timeout",
            ],
            migrations.RunSQL.noop,
        ),
        AddIndexConcurrently(
            model_name="vouchercode",
            index=models.Index(
                condition=models.Q(("hold", None), ("order_id", None)),
                fields=["shelf", "position"],
                name="catalogue_code_in_stock",
            ),
        ),
        AddIndexConcurrently(
            model_name="vouchercode",
            index=models.Index(
                condition=models.Q(("hold__isnull", False)),
                fields=["hold"],
                name="catalogue_code_of_hold",
            ),
        ),
    ]
