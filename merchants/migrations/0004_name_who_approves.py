from django.contrib.postgres.operations import AddConstraintNotValid
from django.db import migrations, models
from django.db.models import F, Q


def by_another(maker: str) -> Q:
    return Q(approved_by=None, approved_at=None) | (
        Q(approved_by__isnull=False, approved_at__isnull=False) & ~Q(approved_by=F(maker))
    )


class Migration(migrations.Migration):
    """An approval without a person passed: the comparison with NULL is not false."""

    dependencies = [
        ("merchants", "0003_protect_people"),
    ]

    operations = [
        operation
        for model, maker in (("invitation", "invited_by"), ("factorreset", "asked_by"))
        for operation in (
            migrations.RemoveConstraint(
                model_name=model, name=f"merchants_{model}_approved_by_another"
            ),
            AddConstraintNotValid(
                model_name=model,
                constraint=models.CheckConstraint(
                    name=f"merchants_{model}_approved_by_another", condition=by_another(maker)
                ),
            ),
        )
    ]
