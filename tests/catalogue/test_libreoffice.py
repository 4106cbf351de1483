"""Lists that are exported, opened and saved in LibreOffice, and imported again, are unchanged."""

import csv
import re
import subprocess
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.urls import reverse

from catalogue.models import Category, PriceList, PriceListEntry, Product, ReferenceLink
from core.files.table_files import write_table
from figures.models import ExchangeRate
from operators.imports.catalogue_file import check_catalogue
from operators.imports.catalogue_table import LISTS
from tests.commands import run
from tests.factories import (
    link,
    make_category,
    make_field,
    make_product,
    make_topup_product,
    make_variation,
    own_shelf,
)
from tests.merchants.people import browser_of, make_member
from tests.operators.back_office import make_staff, signed_in
from tests.operators.catalogue.test_price_list_files import full_list
from tests.operators.pages.test_exports import content
from topups.models import TopUpProduct

pytestmark = [
    pytest.mark.django_db,
    pytest.mark.libreoffice,
    pytest.mark.usefixtures("alone"),
]

# CSV with commas, quotation marks, and UTF-8, as a person chooses it in the dialog.
AS_TEXT = "CSV:44,34,76,1"
NAMES = [
    "Card",
    "007",
    "1.50",
    "3/4",
    "1 May",
    "10:30",
    "5%",
    "1e5",
    ".5",
    "TRUE",
    "=1+1",
    "+1",
    "-",
]
NAMES += ["@x", "'n Sync", "'=1", '"quoted"', '="001"', "#tag", "\u00e9 \u2603", "a,b;c\td", "a\nb"]
NAMES += ["5 EUR card", "00123456789012345678", " around ", "'007", "Gr\u00f6\u00dfe", "May 2024"]
REFERENCES = ["007", "12345678901234567890", "A-1", "1.50", "3/4", "1:30", "a_x0041_b", "x "]

Save = Callable[[Path, str], Path]


@pytest.fixture
def save(tmp_path: Path) -> Save:
    """Opens a file in LibreOffice, and saves it in this format."""

    def save(path: Path, ending: str) -> Path:
        folder = tmp_path / "saved"
        kind = f"csv:Text - txt - csv (StarCalc):{AS_TEXT[4:]}" if ending == "csv" else ending
        subprocess.run(
            [
                *("soffice", f"-env:UserInstallation=file://{tmp_path}/profile", "--headless"),
                *([f"--infilter={AS_TEXT}"] if path.suffix == ".csv" else []),
                *("--convert-to", kind, "--outdir", str(folder), str(path)),
            ],
            check=True,
            capture_output=True,
            timeout=120,
        )
        return folder / f"{path.stem}.{ending}"

    return save


def test_a_time_is_shown_with_its_second(tmp_path: Path, save: Save) -> None:
    midnight = datetime(2026, 11, 1, tzinfo=UTC)
    moments = [midnight - timedelta(microseconds=300_000)]
    moments += [midnight + timedelta(seconds=n * 1361) for n in range(60)]
    file = tmp_path / "times.xlsx"
    file.write_bytes(b"".join(write_table("xlsx", ["time"], [(one,) for one in moments])))

    _, *lines = csv.reader(save(file, "csv").read_text().splitlines())

    assert lines == [[f"{one:%Y-%m-%d %H:%M:%S} UTC"] for one in moments]


@pytest.mark.parametrize("saved", ["xlsx", "csv"])
@pytest.mark.parametrize("exported", ["xlsx", "csv"])
def test_a_catalogue_is_unchanged(tmp_path: Path, save: Save, exported: str, saved: str) -> None:
    category = make_category()
    Category.objects.update(name="Cards, and more")
    for number, name in enumerate(NAMES):
        product = make_product(price=f"{number}.9905")
        Product.objects.filter(pk=product.pk).update(name=name, category=category)
        variation = make_variation(product, price="1.50", active=False)
        type(variation).objects.filter(pk=variation.pk).update(name=name)
    topup = make_topup_product(available_stock=5)
    make_field(topup)
    TopUpProduct.objects.filter(pk=topup.pk).update(external_provider="007")
    file = tmp_path / f"catalogue.{exported}"
    run("export_catalogue", file)

    found = check_catalogue(path=save(file, saved))

    assert found["changes"] == []
    assert [found[kind]["created"] for kind in LISTS.values()] == [0] * 4
    assert found["products"]["unchanged"] == found["variations"]["unchanged"] == len(NAMES)
    assert [doubt for doubt in found["doubts"].values() if "stand for nothing" not in doubt] == []


@pytest.mark.parametrize("saved", ["xlsx", "csv"])
def test_references_are_unchanged(tmp_path: Path, save: Save, saved: str) -> None:
    member = make_member()
    for reference in REFERENCES:
        link(member.account, reference, own_shelf(make_product(name=f"'{reference}")))
    browser = browser_of(member)
    exported: Any = browser.get(
        "/merchant/references/references.xlsx", headers={"Accept-Language": "de"}
    )
    file = tmp_path / "references.xlsx"
    file.write_bytes(exported.getvalue())

    content = save(file, saved).read_bytes()

    sent = {"file": SimpleUploadedFile("references", content)}
    page = browser.post("/merchant/references/import/", sent, follow=True).content.decode()
    assert "References set: 0. References removed: 0." in page, re.sub(r"\s+", " ", page)
    assert sorted(ReferenceLink.objects.values_list("reference", flat=True)) == sorted(REFERENCES)


@pytest.mark.parametrize("saved", ["xlsx", "csv"])
@pytest.mark.parametrize("exported", ["xlsx", "csv"])
def test_prices_and_rates_are_unchanged(
    tmp_path: Path, save: Save, exported: str, saved: str
) -> None:
    boss = make_staff(superuser=True)
    gold, browser = PriceList.objects.create(name="Gold, or 007", currency="USD"), signed_in(boss)
    full_list(gold, boss)
    for day, rate in (("2026-01-05", "1.085"), ("2026-02-05", "17450.123456789")):
        ExchangeRate.objects.create(currency="EUR", into="IDR", day=day, rate=rate)
    for model, command in (
        (PriceListEntry, "import_price_lists"),
        (ExchangeRate, "import_exchange_rates"),
    ):
        meta = model._meta
        name = f"admin:{meta.app_label}_{meta.model_name}_list_file"
        file = tmp_path / f"{meta.model_name}.{exported}"
        file.write_bytes(content(browser.get(reverse(name, args=[exported]))))

        found = run(command, save(file, saved), "--check")

        assert (found["changes"], found["doubts"], found["left"]) == ([], {}, 0)
