"""Each new entry gets a hash. Earlier entries are never changed, and have none."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("wallets", "0003_chain_of_wallets")]

    operations = [
        migrations.AddField("ledgerentry", "chain", models.BinaryField(null=True)),
        migrations.AddField("ledgerentry", "salt", models.UUIDField(editable=False, null=True)),
    ]
