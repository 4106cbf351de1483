"""What a merchant's statement is read by: where a date lies, and the entries that are rare.

Nearly all entries are purchases, so among all of them a deposit would be searched for long. The
index holds the others only, and costs a purchase nothing.
"""

from pathlib import Path

from django.contrib.postgres.operations import AddIndexConcurrently
from django.db import migrations, models

from config.database.migrations import run_sql_file

SQL = Path(__file__).resolve().parent.parent / "sql"


class Migration(migrations.Migration):
    atomic = False  # the index is built while sales go on

    dependencies = [("wallets", "0006_storage")]
    operations = [
        run_sql_file(SQL / "entries_since.sql"),
        AddIndexConcurrently(
            model_name="ledgerentry",
            index=models.Index(
                name="wallets_entry_of_rare_kind",
                fields=["wallet", "kind", "id"],
                condition=~models.Q(kind="purchase"),
            ),
        ),
    ]
