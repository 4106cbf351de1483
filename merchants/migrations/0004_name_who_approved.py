from django.contrib.postgres.operations import AddConstraintNotValid
from django.db import migrations, models
from django.db.models import F, Q


class Migration(migrations.Migration):
    dependencies = [("merchants", "0003_protect_people")]

    operations = [
        migrations.RemoveConstraint(
            model_name="invitation", name="merchants_invitation_approved_by_another"
        ),
        AddConstraintNotValid(
            model_name="invitation",
            constraint=models.CheckConstraint(
                condition=Q(approved_by=None, approved_at=None)
                | (
                    Q(approved_by__isnull=False, approved_at__isnull=False)
                    & ~Q(approved_by=F("invited_by"))
                ),
                name="merchants_invitation_approved_by_another",
            ),
        ),
        migrations.RemoveConstraint(
            model_name="factorreset", name="merchants_factorreset_approved_by_another"
        ),
        AddConstraintNotValid(
            model_name="factorreset",
            constraint=models.CheckConstraint(
                condition=Q(approved_by=None, approved_at=None)
                | (
                    Q(approved_by__isnull=False, approved_at__isnull=False)
                    & ~Q(approved_by=F("asked_by"))
                ),
                name="merchants_factorreset_approved_by_another",
            ),
        ),
    ]
