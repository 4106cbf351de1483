from django.db import migrations

from core.database.migrations import ValidateConstraint


class Migration(migrations.Migration):
    dependencies = [
        ("merchants", "0006_email_about_cases"),
    ]
    operations = [
        ValidateConstraint(model_name="email", name="merchants_email_kind_is_known"),
    ]
