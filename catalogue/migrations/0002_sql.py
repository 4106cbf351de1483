"""Functions, triggers and storage of this app; each file of `sql/` says what it is for."""

from pathlib import Path

from django.db import migrations

from core.database.migrations import install_sql


class Migration(migrations.Migration):
    dependencies = [
        ("catalogue", "0001_initial"),
        ("audit", "0002_sql"),
    ]
    operations = install_sql(
        Path(__file__).parents[1] / "sql",
        {
            "constraints.sql": "129ef62bb3c38cfb96cac8e5e01e471b37d850f577cb4e869a7a595461af0391",
            "shelves.sql": "2c5288e087c4a0277370b8af1fc5078117986e284db5b35c43afed0eb9a8a0a9",
            "guards.sql": "1afe6b8216a3beab5c877f7e60617e04b1acc97e6810ba89db5ef555d6806116",
            "holds.sql": "898c447d607be01617fb0344ce45cb52b417fcdb3b9943417808e21485d29727",
            "is_on_sale.sql": "70887a866307af7c14ee928ae47321431ded2eafe27c120c0692049d0534ad9f",
            "released/0002_offer.sql": "fc9a751bdc4b25f9b8f7e42264336cd2e26ffaf63d81603950308fe910ec9fcf",
            "released/0002_take_codes.sql": "37a7d3e2e8823ca7244fbbc59de0f476a290fd9b6dea96584d8ce46050b4b8fb",
            "released/0002_price_history.sql": "901f0a9ef81931e7c0f4100fcb83cce34652978a9c5034a9cb9a2aa6fe8c9f45",
            "storage.sql": "d564416448d2e5f94a23617b8f0169c2253a94026cd6034c3d77458906e8313b",
        },
    )
