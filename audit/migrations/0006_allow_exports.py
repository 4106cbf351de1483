from django.db import migrations


class Migration(migrations.Migration):
    dependencies = [
        ("audit", "0005_index_objects_by_time"),
    ]

    operations = [
        migrations.AlterModelOptions(
            name="auditentry",
            options={
                "permissions": [("export_lists", "Can download lists as files")],
                "verbose_name_plural": "audit entries",
            },
        ),
    ]
