from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("accounts", "0006_find_key")]

    operations = [
        migrations.AddField(
            model_name="requestrecord",
            name="problems",
            field=models.JSONField(db_default=models.Value({}, models.JSONField()), default=dict),
        ),
    ]
