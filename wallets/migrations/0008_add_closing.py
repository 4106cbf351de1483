"""A wallet can be closed. NULL until its account moves to another cell."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("wallets", "0007_index_bookings")]

    operations = [
        migrations.AddField("wallet", "closed_at", models.DateTimeField(null=True, editable=False))
    ]
