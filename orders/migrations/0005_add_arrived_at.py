"""An order says when it came from another cell. NULL for what was bought here."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("orders", "0004_add_daily_sales")]

    operations = [
        migrations.AddField("order", "arrived_at", models.DateTimeField(null=True, editable=False))
    ]
