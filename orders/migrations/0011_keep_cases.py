"""An order that costs nothing names the case that it is the outcome of."""

from pathlib import Path

from django.contrib.postgres.operations import AddConstraintNotValid
from django.db import migrations, models

from core.database.migrations import install_sql


class Migration(migrations.Migration):
    dependencies = [
        ("orders", "0010_total_sales"),
        ("wallets", "0014_check_replacements"),
    ]
    operations = [
        migrations.AddField(
            model_name="order",
            name="case_id",
            field=models.BigIntegerField(editable=False, null=True),
        ),
        AddConstraintNotValid(
            model_name="order",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    models.Q(("case_id", None), ("total_price__gt", 0)),
                    models.Q(
                        ("case_id__isnull", False),
                        ("quantity", 1),
                        ("shelf__isnull", False),
                        ("total_price", 0),
                    ),
                    _connector="OR",
                ),
                name="orders_order_is_paid_or_replaces",
            ),
        ),
        *install_sql(
            Path(__file__).parents[1] / "sql",
            {
                "replace_code.sql": "9d106ee80d59c1f5b0871a729f95d8e40f109ae746934579d10294dcc83bcc76"
            },
        ),
    ]
