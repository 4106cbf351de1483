"""An account says when it left for another cell. NULL until then."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("accounts", "0004_rename_labels")]

    operations = [
        migrations.AddField("account", "left_at", models.DateTimeField(null=True, editable=False))
    ]
