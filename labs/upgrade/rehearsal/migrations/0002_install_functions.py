from pathlib import Path

from django.conf import settings
from django.db import migrations

FUNCTIONS = (
    "idempotency/sql/claim.sql",
    "catalogue/sql/offer.sql",
    "wallets/sql/post_entry.sql",
    "orders/sql/purchase_vouchers.sql",
    "orders/sql/purchase_topup.sql",
)


class Migration(migrations.Migration):
    """Replaces the functions of a purchase by the new version's, while the old version calls them."""

    dependencies = [
        ("rehearsal", "0001_widen_tables"),
        # The functions use what these add.
        ("wallets", "0002_sql"),
        ("catalogue", "0002_sql"),
    ]
    operations = [
        migrations.RunSQL(Path(settings.BASE_DIR, path).read_text()) for path in FUNCTIONS
    ]
