"""Words that people read. It runs no SQL."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("catalogue", "0006_drop_index_of_unsold_codes"),
    ]

    operations = [
        migrations.AlterField(
            model_name="product",
            name="type",
            field=models.CharField(
                blank=True,
                choices=[("voucher", "Voucher"), ("top_up", "Top-up")],
                max_length=16,
                null=True,
            ),
        ),
    ]
