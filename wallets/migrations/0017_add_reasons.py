from django.db import migrations, models


class Migration(migrations.Migration):
    """Bookings have a reason that their merchant reads."""

    dependencies = [
        ("wallets", "0016_keep_closes"),
    ]

    operations = [
        migrations.AddField(
            model_name=model,
            name="reason",
            field=models.CharField(max_length=500, null=True, verbose_name="for the merchant"),
        )
        for model in ("ledgerentry", "bookingapproval")
    ]
