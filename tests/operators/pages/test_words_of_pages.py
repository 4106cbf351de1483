"""Names of rows and colours of badges are found in each language."""

from collections.abc import Iterator

import pytest
from django.apps import apps
from django.utils import translation
from pytest_django import DjangoDbBlocker
from unfold.utils import display_for_label

from core.texts import in_english, lazy
from operators.frame import row_names
from operators.frame.base import Colours
from operators.frame.row_names import ROWS, row_name
from tests.operators.back_office import World, rows_for_a_module


@pytest.fixture(scope="module")
def world(django_db_setup: None, django_db_blocker: DjangoDbBlocker) -> Iterator[None]:
    with rows_for_a_module(django_db_blocker):
        World().grow(1)
        yield


def test_each_name_of_a_row_is_what_its_model_says(
    world: None, db: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        row_names, "gettext", lambda words: f"In German: {words}" if "%(" in words else words
    )
    for label in ROWS:
        row = apps.get_model(label)._default_manager.latest("pk")
        name = row_name(type(row), str(row))
        assert name == f"In German: {row}", label


@pytest.mark.parametrize(
    ("label", "name", "german"),
    [
        ("wallets.bankdetails", "Bank details for X", "Bankverbindung für X"),
        ("wallets.bookinglimit", "Deposit up to ", "Einzahlung bis "),
        ("figures.exchangerate", "EUR to USD from ", "EUR in USD ab "),
    ],
)
def test_a_stored_name_is_shown_in_german(
    label: str, name: str, german: str, world: None, db: None
) -> None:
    model = apps.get_model(label)
    with in_english():
        stored = str(model._default_manager.latest("pk"))
    assert stored.startswith(name)
    with translation.override("de"):
        assert row_name(model, stored).startswith(german)


def test_a_name_of_its_own_stays(db: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(row_names, "gettext", lambda words: f"In German: {words}")
    product = apps.get_model("catalogue.product")
    assert row_name(product, "code 4") == "code 4"
    assert row_name(apps.get_model("catalogue.batch"), "my batch 4") == "my batch 4"


def test_a_badge_has_its_colour_in_each_language() -> None:
    colours = Colours({lazy("withdrawn"): "danger", lazy("received"): "success"})
    for language, text in (("en", "withdrawn"), ("de", "zurückgezogen")):
        with translation.override(language):
            assert text in colours
            assert colours[text] == "danger"
            assert "red" in display_for_label(text, "-", colours)
            assert "other" not in colours
