"""Actions need no migration: AuditAction lists them."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("audit", "0003_choose_no_times"),
    ]

    operations = [
        migrations.AlterField(
            model_name="auditentry",
            name="action",
            field=models.CharField(max_length=32),
        ),
    ]
