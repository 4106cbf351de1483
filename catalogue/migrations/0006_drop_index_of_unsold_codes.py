"""The index of codes in stock replaces the index of unsold codes."""

from django.db import migrations

from core.database.migrations import RemoveIndexConcurrently


class Migration(migrations.Migration):
    atomic = False
    dependencies = [("catalogue", "0005_sql_code_holds")]
    operations = [RemoveIndexConcurrently("vouchercode", "catalogue_code_unsold")]
