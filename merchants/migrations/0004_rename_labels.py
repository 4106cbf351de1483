"""Words that people read. It runs no SQL."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("merchants", "0003_index_email_addresses"),
    ]

    operations = [
        migrations.AlterModelOptions(
            name="membership",
            options={"verbose_name": "member"},
        ),
        migrations.AlterField(
            model_name="email",
            name="kind",
            field=models.CharField(
                choices=[
                    ("invitation", "Invitation"),
                    ("password_reset", "Password reset"),
                    ("change", "Change"),
                    ("low_balance", "Low balance"),
                    ("staff_notice", "Staff notice"),
                ],
                max_length=16,
            ),
        ),
    ]
