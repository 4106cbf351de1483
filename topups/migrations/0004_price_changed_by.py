from pathlib import Path

from django.db import migrations, models

from config.database.migrations import run_sql_file

SQL = Path(__file__).resolve().parent.parent / "sql"


class Migration(migrations.Migration):
    dependencies = [
        ("topups", "0003_price_history"),
    ]

    operations = [
        migrations.AddField(
            model_name="pricechange",
            name="changed_by",
            field=models.CharField(db_default="", max_length=200),
        ),
        run_sql_file(SQL / "price_history.sql"),
    ]
