from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("accounts", "0010_choose_time_zones")]

    operations = [
        migrations.AddField(
            model_name="preferences",
            name="language",
            field=models.CharField(blank=True, db_default="", max_length=8),
        ),
    ]
