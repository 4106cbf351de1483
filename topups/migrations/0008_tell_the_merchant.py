from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("topups", "0007_validate_product_of_price_entry")]

    operations = [
        migrations.AddField(
            model_name="fulfilment",
            name="message",
            field=models.CharField(
                blank=True,
                db_default="",
                editable=False,
                max_length=500,
                verbose_name="message for the merchant",
            ),
        ),
        migrations.AddField(
            model_name="fulfilment",
            name="reject_reason",
            field=models.CharField(blank=True, db_default="", editable=False, max_length=16),
        ),
    ]
