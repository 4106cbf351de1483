"""A transfer of an account says whether the account was switched on."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("operators", "0007_rename_labels")]

    operations = [
        migrations.AddField("accounttransfer", "was_enabled", models.BooleanField(db_default=True))
    ]
