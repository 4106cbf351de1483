"""Words that people read. It runs no SQL."""

import django.core.validators
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("topups", "0007_every_failure_has_a_reason"),
    ]

    operations = [
        migrations.AlterModelOptions(
            name="fulfilment",
            options={
                "permissions": [
                    ("fulfil", "Can claim, complete, reject and send to review"),
                    ("decide_review", "Can decide orders in review and act on others' claims"),
                ],
                "verbose_name": "top-up",
            },
        ),
        migrations.AlterModelOptions(
            name="topupfield",
            options={"ordering": ["position", "number"], "verbose_name": "top-up field"},
        ),
        migrations.AlterModelOptions(
            name="topupproduct",
            options={"verbose_name": "top-up product"},
        ),
        migrations.AlterField(
            model_name="fulfilment",
            name="failure_reason",
            field=models.CharField(
                blank=True,
                choices=[
                    ("wrong_id", "Wrong player ID"),
                    ("no_stock", "No stock"),
                    ("fulfilment_failed", "Fulfilment failed"),
                ],
                max_length=32,
                null=True,
            ),
        ),
        migrations.AlterField(
            model_name="fulfilment",
            name="status",
            field=models.CharField(
                choices=[
                    ("pending", "Pending"),
                    ("pending_review", "Pending review"),
                    ("processing", "Processing"),
                    ("completed", "Completed"),
                    ("failed", "Failed"),
                ],
                default="pending",
                max_length=16,
            ),
        ),
        migrations.AlterField(
            model_name="fulfilmentevent",
            name="channel",
            field=models.CharField(
                choices=[
                    ("api", "API"),
                    ("admin", "Admin"),
                    ("command", "Command"),
                    ("telegram", "Telegram"),
                    ("system", "System"),
                ],
                max_length=16,
            ),
        ),
        migrations.AlterField(
            model_name="fulfilmentevent",
            name="from_status",
            field=models.CharField(
                choices=[
                    ("pending", "Pending"),
                    ("pending_review", "Pending review"),
                    ("processing", "Processing"),
                    ("completed", "Completed"),
                    ("failed", "Failed"),
                ],
                max_length=16,
                null=True,
            ),
        ),
        migrations.AlterField(
            model_name="fulfilmentevent",
            name="to_status",
            field=models.CharField(
                choices=[
                    ("pending", "Pending"),
                    ("pending_review", "Pending review"),
                    ("processing", "Processing"),
                    ("completed", "Completed"),
                    ("failed", "Failed"),
                ],
                max_length=16,
            ),
        ),
        migrations.AlterField(
            model_name="topupfield",
            name="number",
            field=models.PositiveIntegerField(
                validators=[django.core.validators.MinValueValidator(1)], verbose_name="ID"
            ),
        ),
    ]
