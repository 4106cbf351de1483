from django.db import migrations


class Migration(migrations.Migration):
    dependencies = [("sign_in", "0001_initial")]

    operations = [
        migrations.AlterModelOptions(
            name="companyidentity",
            options={
                "permissions": [
                    ("manage_staff", "Can add staff, give and make roles, and end access")
                ],
                "verbose_name_plural": "company identities",
            },
        ),
    ]
