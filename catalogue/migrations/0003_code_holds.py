"""Codes can be held. Nothing here reads a table: 0004 checks the constraints and builds indexes."""

import django.db.models.deletion
import django.db.models.functions.datetime
from django.contrib.postgres.operations import AddConstraintNotValid
from django.db import migrations, models


def hold(*, db_constraint: bool) -> models.ForeignKey:
    return models.ForeignKey(
        "catalogue.codehold",
        on_delete=django.db.models.deletion.PROTECT,
        null=True,
        editable=False,
        related_name="codes",
        db_index=False,
        db_constraint=db_constraint,
    )


class Migration(migrations.Migration):
    dependencies = [("catalogue", "0002_sql")]

    operations = [
        migrations.CreateModel(
            name="CodeHold",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("reason", models.CharField(max_length=500)),
                (
                    "held_at",
                    models.DateTimeField(
                        db_default=django.db.models.functions.datetime.Now(), editable=False
                    ),
                ),
                ("held_by", models.CharField(max_length=200)),
                ("voided_at", models.DateTimeField(editable=False, null=True)),
            ],
        ),
        migrations.SeparateDatabaseAndState(
            state_operations=[
                migrations.AddField("vouchercode", "hold", hold(db_constraint=True)),
            ],
            database_operations=[
                migrations.AddField("vouchercode", "hold", hold(db_constraint=False)),
                migrations.RunSQL(
                    "ALTER TABLE catalogue_vouchercode"
                    " ADD CONSTRAINT catalogue_vouchercode_hold_fk"
                    " FOREIGN KEY (hold_id) REFERENCES catalogue_codehold (id)"
                    " DEFERRABLE INITIALLY DEFERRED NOT VALID",
                    migrations.RunSQL.noop,
                ),
            ],
        ),
        AddConstraintNotValid(
            model_name="vouchercode",
            constraint=models.CheckConstraint(
                condition=models.Q(("order_id", None), ("hold", None), _connector="OR"),
                name="catalogue_code_sold_is_not_held",
            ),
        ),
    ]
