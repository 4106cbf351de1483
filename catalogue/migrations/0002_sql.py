"""Functions, triggers and storage of this app; each file of `sql/` says what it is for."""

from pathlib import Path

from django.db import migrations

from config.database.migrations import install_sql


class Migration(migrations.Migration):
    dependencies = [
        ("catalogue", "0001_initial"),
    ]
    operations = install_sql(
        Path(__file__).parents[1] / "sql",
        {
            "constraints.sql": "b2a414a6cf3d275f4026fad33f0864c3f39d7347a93d9fff27e5129472bf5860",
            "shelves.sql": "5413d57490f24a63e297b84745ad093934c622962d92847c5287ff0fdf9d2f1f",
            "is_on_sale.sql": "214697cadd5a8d1b2ca50c978490e96999abe5e4fc16c0bbbb8f051e0ddf3183",
            "offer.sql": "f78fbfc21a1f3126dab7da2b05e5fcd02491071b374235c9f470cd7849d56d69",
            "take_codes.sql": "9283377f04d46c2e6b82e4943fec81dfde6077a522461df14758e995a7d9a589",
            "price_history.sql": "ec4e83f540e72f63f708c9b47e986b0dc81f15e9032323366b04c47115e6e02e",
            "storage.sql": "ab2dcb3c45b7446f598ef7d354ccb8f3bc2e7854c46491b65fd41952dce9e5ec",
        },
    )
