from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("upkeep", "0002_note_backups"),
    ]

    operations = [
        migrations.AddField(
            model_name="reconcilerun",
            name="history_until",
            field=models.DateTimeField(null=True),
        ),
    ]
