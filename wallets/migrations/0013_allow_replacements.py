from pathlib import Path

from django.contrib.postgres.operations import AddConstraintNotValid
from django.db import migrations, models

from core.database.migrations import install_sql


class Migration(migrations.Migration):
    """An order that replaces a code has an entry of zero."""

    dependencies = [
        ("wallets", "0012_check_old_limits"),
    ]

    operations = [
        migrations.RemoveConstraint(
            model_name="ledgerentry",
            name="wallets_entry_kind_and_sign_agree",
        ),
        migrations.AlterField(
            model_name="ledgerentry",
            name="kind",
            field=models.CharField(
                choices=[
                    ("deposit", "Deposit"),
                    ("payout", "Payout"),
                    ("adjustment", "Adjustment"),
                    ("purchase", "Purchase"),
                    ("refund", "Refund"),
                    ("credit", "Credit"),
                    ("replacement", "Replacement"),
                ],
                max_length=16,
            ),
        ),
        AddConstraintNotValid(
            model_name="ledgerentry",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    models.Q(
                        ("counterpart", "bank"),
                        ("kind", "deposit"),
                        ("order_reference", None),
                        models.Q(
                            ("amount__gt", 0),
                            ("booking_reference__startswith", "reversal-of-entry:"),
                            _connector="OR",
                        ),
                    ),
                    models.Q(
                        ("counterpart", "bank"),
                        ("kind", "payout"),
                        ("order_reference", None),
                        models.Q(
                            ("amount__lt", 0),
                            ("booking_reference__startswith", "reversal-of-entry:"),
                            _connector="OR",
                        ),
                    ),
                    models.Q(
                        ("counterpart", "corrections"),
                        ("kind", "adjustment"),
                        ("order_reference", None),
                        models.Q(("amount", 0), _negated=True),
                    ),
                    models.Q(
                        ("amount__lt", 0),
                        ("counterpart", "sales"),
                        ("kind", "purchase"),
                        ("order_reference__isnull", False),
                    ),
                    models.Q(
                        ("amount__gt", 0),
                        ("counterpart", "sales"),
                        ("kind", "refund"),
                        ("order_reference__isnull", False),
                    ),
                    models.Q(
                        ("counterpart", "sales"),
                        ("kind", "credit"),
                        ("order_reference__isnull", False),
                        models.Q(
                            ("amount__gt", 0),
                            ("booking_reference__startswith", "reversal-of-entry:"),
                            _connector="OR",
                        ),
                    ),
                    models.Q(
                        ("amount", 0),
                        ("booking_reference__startswith", "replacement-of-case:"),
                        ("counterpart", "sales"),
                        ("kind", "replacement"),
                        ("order_reference__isnull", False),
                    ),
                    _connector="OR",
                ),
                name="wallets_entry_kind_and_sign_agree",
            ),
        ),
        *install_sql(
            Path(__file__).parents[1] / "sql",
            {"replace.sql": "0fe7441420cee09d0590e4b0e9bca6eeb97a244a7071b57dba0e7b3f6f3e2be3"},
        ),
    ]
