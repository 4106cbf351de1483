from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("accounts", "0007_keep_problems")]

    operations = [
        migrations.AddField(
            model_name="account",
            name="needs_factors",
            field=models.BooleanField(db_default=False, editable=False),
        ),
    ]
