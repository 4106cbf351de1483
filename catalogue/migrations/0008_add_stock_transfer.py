"""Codes that were sent to another cell, or received from one."""

import django.db.models.deletion
import django.db.models.functions.datetime
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("catalogue", "0007_index_prices")]

    operations = [
        migrations.CreateModel(
            name="StockTransfer",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("reference", models.CharField(max_length=64)),
                ("cell", models.CharField(help_text="The other cell.", max_length=8)),
                ("codes", models.PositiveIntegerField(help_text="How many.")),
                (
                    "at",
                    models.DateTimeField(
                        db_default=django.db.models.functions.datetime.Now(), editable=False
                    ),
                ),
                (
                    "hold",
                    models.OneToOneField(
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="transfer",
                        to="catalogue.codehold",
                    ),
                ),
                (
                    "shelf",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to="catalogue.shelf",
                    ),
                ),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(
                        condition=models.Q(("hold__isnull", False)),
                        fields=("reference",),
                        name="catalogue_transfer_sent_once",
                    ),
                    models.UniqueConstraint(
                        condition=models.Q(("hold", None)),
                        fields=("cell", "reference"),
                        name="catalogue_transfer_received_once",
                    ),
                ],
            },
        ),
    ]
