"""Checks what 0003 added, and builds the index of codes in stock, while purchases go on."""

from django.contrib.postgres.operations import ValidateConstraint
from django.db import migrations, models

from config.database.migrations import AddIndexConcurrently


class Migration(migrations.Migration):
    atomic = False
    dependencies = [("catalogue", "0003_code_holds")]

    operations = [
        migrations.RunSQL(
            "ALTER TABLE catalogue_vouchercode VALIDATE CONSTRAINT catalogue_vouchercode_hold_fk",
            migrations.RunSQL.noop,
        ),
        ValidateConstraint(model_name="vouchercode", name="catalogue_code_sold_is_not_held"),
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
