from django.db import migrations, models


class Migration(migrations.Migration):
    initial = True

    dependencies = []

    operations = [
        migrations.CreateModel(
            name="EncryptionKey",
            fields=[
                ("key_id", models.PositiveSmallIntegerField(primary_key=True, serialize=False)),
                ("wrapped", models.BinaryField()),
                ("sealing_since", models.DateTimeField(null=True)),
            ],
            options={
                "default_permissions": (),
            },
        ),
    ]
