"""Words that people read. It runs no SQL."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("accounts", "0003_request_records"),
    ]

    operations = [
        migrations.AlterModelOptions(
            name="apiclient",
            options={"verbose_name": "API client"},
        ),
        migrations.AlterModelOptions(
            name="requestrecord",
            options={"verbose_name": "request"},
        ),
        migrations.AlterField(
            model_name="requestrecord",
            name="request_id",
            field=models.UUIDField(verbose_name="request ID"),
        ),
    ]
