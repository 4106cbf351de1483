from django.db import migrations

from core.database.migrations import ValidateConstraint


class Migration(migrations.Migration):
    dependencies = [
        ("merchants", "0004_name_who_approves"),
    ]

    operations = [
        ValidateConstraint(model_name=model, name=f"merchants_{model}_approved_by_another")
        for model in ("invitation", "factorreset")
    ]
