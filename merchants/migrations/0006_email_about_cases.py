from django.contrib.postgres.operations import AddConstraintNotValid
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("merchants", "0005_check_old_approvals"),
    ]

    operations = [
        migrations.RemoveConstraint(
            model_name="email",
            name="merchants_email_kind_is_known",
        ),
        migrations.AlterField(
            model_name="email",
            name="kind",
            field=models.CharField(
                choices=[
                    ("invitation", "Invitation"),
                    ("password_reset", "Password reset"),
                    ("change", "Notice of a change"),
                    ("low_balance", "Low balance"),
                    ("staff_notice", "Staff notice"),
                    ("case", "Case"),
                ],
                max_length=16,
            ),
        ),
        AddConstraintNotValid(
            model_name="email",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    (
                        "kind__in",
                        [
                            "invitation",
                            "password_reset",
                            "change",
                            "low_balance",
                            "staff_notice",
                            "case",
                        ],
                    )
                ),
                name="merchants_email_kind_is_known",
            ),
        ),
    ]
