from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("orders", "0005_limit_spending"),
    ]
    operations = [
        migrations.AddField(
            model_name="order",
            name="idempotency_key",
            field=models.CharField(editable=False, max_length=128, null=True),
        ),
    ]
