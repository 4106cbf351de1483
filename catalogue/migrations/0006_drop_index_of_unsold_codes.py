"""The index of codes in stock replaces the index of unsold codes."""

from django.contrib.postgres.operations import RemoveIndexConcurrently
from django.db import migrations


class Migration(migrations.Migration):
    atomic = False
    dependencies = [("catalogue", "0005_sql_code_holds")]
    operations = [RemoveIndexConcurrently("vouchercode", "catalogue_code_unsold")]
