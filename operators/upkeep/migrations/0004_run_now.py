from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("upkeep", "0003_slice_history"),
    ]

    operations = [
        migrations.AlterModelOptions(
            name="reconcilerun",
            options={"permissions": [("run_reconcile", "Can run reconcile now")]},
        ),
        migrations.AddField(
            model_name="reconcilerun",
            name="asked_by",
            field=models.CharField(blank=True, db_default="", max_length=200),
        ),
        migrations.AddField(
            model_name="reconcilerun",
            name="begun_at",
            field=models.DateTimeField(null=True),
        ),
        migrations.AddField(
            model_name="reconcilerun",
            name="progress",
            field=models.CharField(blank=True, db_default="", max_length=200),
        ),
    ]
