"""Letters about a forgotten password are counted without reading all letters there ever were."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("merchants", "0004_balance_alert")]

    operations = [
        migrations.AddIndex(
            model_name="mail",
            index=models.Index(
                name="merchants_mail_resets",
                fields=["about", "created_at"],
                condition=models.Q(kind="password_reset"),
            ),
        ),
    ]
