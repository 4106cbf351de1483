"""Codes that were stored twice, because of marks around one of them, are held, with a finding."""

from pathlib import Path

import pytest

from catalogue.models import CodeHold, VoucherCode
from catalogue.stock import codes, repeats
from catalogue.stock.repeats import HELD_BY, hold_repeats
from catalogue.stock.traces import find_codes, trace_codes
from tests.commands import run
from tests.factories import make_merchant, make_product, own_shelf

pytestmark = pytest.mark.django_db


def import_as_before(product: int, path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Imports a file with the digests of old versions, which depend on marks."""
    with monkeypatch.context() as patch:
        patch.setattr(codes, "without_marks", lambda text: text)
        patch.setattr("core.files.tables.plain_text", lambda text, **_options: text)
        patch.setattr("core.files.tables.is_marked", lambda _text: False)
        run("import_codes", product, path)


@pytest.mark.parametrize("batch", [1, 2, 2000])
def test_repeats_are_held_once_and_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, batch: int
) -> None:
    monkeypatch.setattr(repeats, "BATCH", batch)
    product, path = make_product(), tmp_path / "codes.csv"
    path.write_text("code,serial_number\nSOLD-1,A-SERIAL\nTWIN-1,\n'THRICE,\nALONE-1',SOLD-1\n")
    import_as_before(product.pk, path, monkeypatch)
    make_merchant().buy(product_id=product.pk, quantity=1)
    path.write_text('code\n\'SOLD-1\n\'TWIN-1\n"""THRICE"""\nOTHER\n')
    import_as_before(product.pk, path, monkeypatch)
    path.write_text("code\nTHRICE\n")
    run("import_codes", product.pk, path)

    assert hold_repeats() == 6
    assert hold_repeats() == 0
    held = VoucherCode.objects.filter(hold__held_by=HELD_BY)
    texts = {codes.open_code(one.sealed, one.digest).code for one in held}
    assert texts == {"TWIN-1", "'THRICE", "'SOLD-1", "'TWIN-1", '"THRICE"', "THRICE"}
    shelf = own_shelf(product)
    assert shelf.available_stock == 2  # ALONE-1' and OTHER
    assert len(find_codes("ALONE-1")) == 1
    (hold, *_more) = CodeHold.objects.filter(held_by=HELD_BY)
    assert hold.reason == repeats.REASON


def test_two_codes_with_marks_repeat_each_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    product, path = make_product(), tmp_path / "codes.csv"
    for text in ("code\n'ONE-1\n", "code\nONE-1'\n"):
        path.write_text(text)
        import_as_before(product.pk, path, monkeypatch)

    assert hold_repeats() == 2


def test_a_serial_number_is_no_repeat_of_a_code(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    product, path = make_product(), tmp_path / "codes.csv"
    path.write_text("code,serial_number\n'FIRST-ONE,\n'TWO-2,FIRST-ONE\n")
    import_as_before(product.pk, path, monkeypatch)
    trace_codes()

    assert hold_repeats() == 0
