"""Each wallet gets the hash of its last entry. The columns are NULL until an entry fills them."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("wallets", "0002_sql")]

    operations = [migrations.AddField("wallet", "chain", models.BinaryField(null=True))]
