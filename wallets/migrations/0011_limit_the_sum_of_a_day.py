import django.db.models.deletion
from django.conf import settings
from django.contrib.postgres.operations import AddConstraintNotValid
from django.db import migrations, models

BOOKINGS = ["deposit", "payout", "adjustment", "credit"]


class Migration(migrations.Migration):
    dependencies = [
        ("auth", "0012_alter_user_first_name_max_length"),
        ("wallets", "0010_announce_transfers"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name="BookedAlone",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("day", models.DateField()),
                (
                    "kind",
                    models.CharField(
                        choices=[(kind, kind.capitalize()) for kind in BOOKINGS], max_length=16
                    ),
                ),
                ("currency", models.CharField(max_length=3)),
                ("amount", models.DecimalField(decimal_places=4, max_digits=20)),
                (
                    "user",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
            ],
            options={
                "default_permissions": (),
                "constraints": [
                    models.UniqueConstraint(
                        fields=("user", "day", "kind", "currency"), name="wallets_alone_once"
                    ),
                    models.CheckConstraint(
                        condition=models.Q(("kind__in", BOOKINGS)),
                        name="wallets_alone_is_of_a_booking",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(("amount__gte", 0)),
                        name="wallets_alone_amount_not_negative",
                    ),
                ],
            },
        ),
        migrations.AddField(
            model_name="bookinglimit",
            name="per_day",
            field=models.DecimalField(
                blank=True,
                decimal_places=4,
                max_digits=20,
                null=True,
                verbose_name="sum of a day",
            ),
        ),
        AddConstraintNotValid(
            model_name="bookinglimit",
            constraint=models.CheckConstraint(
                condition=models.Q(("per_day", None), ("per_day__gte", 0), _connector="OR"),
                name="wallets_limit_per_day_not_negative",
            ),
        ),
    ]
