from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("accounts", "0004_vacuum_request_records")]
    operations = [
        migrations.AddField(
            model_name="account",
            name="price_list_id",
            field=models.BigIntegerField(editable=False, null=True),
        ),
    ]
