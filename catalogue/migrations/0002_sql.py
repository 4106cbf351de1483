"""Functions, triggers and storage of this app; each file of `sql/` says what it is for."""

from pathlib import Path

from django.db import migrations

from core.database.migrations import install_sql


class Migration(migrations.Migration):
    dependencies = [
        ("catalogue", "0001_initial"),
        ("accounts", "0002_sql"),
        ("audit", "0002_sql"),
        ("core", "0001_initial"),
    ]
    operations = install_sql(
        Path(__file__).parents[1] / "sql",
        {
            "constraints.sql": "129ef62bb3c38cfb96cac8e5e01e471b37d850f577cb4e869a7a595461af0391",
            "shelves.sql": "2c5288e087c4a0277370b8af1fc5078117986e284db5b35c43afed0eb9a8a0a9",
            "guards.sql": "1afe6b8216a3beab5c877f7e60617e04b1acc97e6810ba89db5ef555d6806116",
            "holds.sql": "898c447d607be01617fb0344ce45cb52b417fcdb3b9943417808e21485d29727",
            "is_on_sale.sql": "70887a866307af7c14ee928ae47321431ded2eafe27c120c0692049d0534ad9f",
            "storage.sql": "d564416448d2e5f94a23617b8f0169c2253a94026cd6034c3d77458906e8313b",
            "digests.sql": "a9bb12f08aef1a65b1664435a92dd23749471e2a133fdd87b38eae8c9a578504",
            "contents.sql": "053b08cab619a444b41749d92691867eaef7c8570679fc3349379455ab959374",
            "batches.sql": "de1cc08727ddabf850bf39ea38f34427a5dfa084162cc4b59bf1b7e5b4cc19aa",
            "expiry.sql": "c1a7b22bf8f5cac6f4b557056764bd097cb0071f9c68af72af97906eb3ade302",
            "take_codes.sql": "65c6491144df729b0258422f1c62033ba261a63f0c8ec6282248315e5ffe98cd",
            "regular_price.sql": "05746584e1009d2991f2779368b8a75a961b18fa871924cf91dc53d5286b854b",
            "price.sql": "dfd2e68619e11a25b2256097a77b1c17649d7e8af6df243829ca04a9818ed3d2",
            "variations.sql": "7ffb6786b656133db203a7842608385e57ec242d42318f6bfbf9d56a2080e1e6",
            "price_lists.sql": "f9f71b9c98d03470e3624d617b816858ea26dad0d7e968c2c8a08d786b07000c",
            "price_history.sql": "e578af8e73d3d16d4aeddc8c45255389a126c61bb3f7ab01f2ba0827119832f3",
            "offer.sql": "c42d785380fc65ff0e4ad4394bc96a665e47f1bce6ad01f301020c6958377f49",
            "list_of_account.sql": "144747999ea92e98b09f22812bed61965a49618efd6d827de6e325ba68eb29b7",
            "removal.sql": "90250aec2b6015000d1a7398699f20573614ed3318077d1892607c670be313d5",
        },
    )
