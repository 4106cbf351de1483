from django.db import migrations

from core.database.migrations import ValidateConstraint


class Migration(migrations.Migration):
    dependencies = [
        ("merchants", "0009_email_reports"),
    ]

    operations = [
        ValidateConstraint(model_name="email", name="merchants_email_kind_is_known"),
    ]
