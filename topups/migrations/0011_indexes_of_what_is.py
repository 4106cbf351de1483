"""Takes two indexes off the purchase of a top-up: of who claimed it and when it was closed, they held
an entry for each order that nobody had claimed or closed."""

import django.db.models.deletion
from django.conf import settings
from django.contrib.postgres.operations import AddIndexConcurrently, RemoveIndexConcurrently
from django.db import migrations, models


class Migration(migrations.Migration):
    atomic = False  # the indexes are built while sales go on

    dependencies = [
        ("topups", "0010_plans_by_index"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]
    operations = [
        AddIndexConcurrently(
            model_name="fulfilment",
            index=models.Index(
                name="topups_fulfilment_ended",
                fields=["closed_at"],
                condition=models.Q(closed_at__isnull=False),
            ),
        ),
        AddIndexConcurrently(
            model_name="fulfilment",
            index=models.Index(
                name="topups_fulfilment_claimed",
                fields=["claimed_by"],
                condition=models.Q(claimed_by__isnull=False),
            ),
        ),
        RemoveIndexConcurrently(model_name="fulfilment", name="topups_fulfilment_closed"),
        migrations.AlterField(
            model_name="fulfilment",
            name="claimed_by",
            field=models.ForeignKey(
                blank=True,
                db_index=False,
                null=True,
                on_delete=django.db.models.deletion.PROTECT,
                related_name="claimed_fulfilments",
                to=settings.AUTH_USER_MODEL,
            ),
        ),
    ]
