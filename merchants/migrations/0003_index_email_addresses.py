from django.db import migrations, models

from core.database.migrations import AddIndexConcurrently


class Migration(migrations.Migration):
    atomic = False

    dependencies = [
        ("merchants", "0002_sql"),
    ]

    operations = [
        AddIndexConcurrently(
            model_name="email",
            index=models.Index(fields=["to", "id"], name="merchants_email_address"),
        ),
    ]
