"""What the service itself writes into the audit trail is shown in the language of the reader."""

import ast
import re
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path

import pytest
from django.apps import apps
from django.conf import settings
from django.utils import timezone, translation

from operators.history.audit_trail import Entry
from operators.history.entries import NOTES, PROPERTIES, change_texts, note_text, property_name

RECORDERS = re.compile(r"_?record\w*")
# The same in German.
SAME = {"name", "Codes: 5", "Codes: 5. 5"}
UNWRITTEN = {"Person removed"}  # the action says it, and the email


def modules() -> Iterator[tuple[Path, ast.Module]]:
    for app in apps.get_app_configs():
        folder = Path(app.path)
        if folder.is_relative_to(settings.BASE_DIR) and ".venv" not in folder.parts:
            for path in folder.rglob("*.py"):
                text = path.read_text()
                if "record" in text and not {"migrations", "demo"} & set(path.parts):
                    yield path, ast.parse(text)


def texts_in(node: ast.AST) -> Iterator[str]:
    """The texts of an expression, with 5 for each value."""
    if isinstance(node, ast.JoinedStr):
        yield "".join(
            str(part.value) if isinstance(part, ast.Constant) else "5" for part in node.values
        )
    elif isinstance(node, ast.Constant):
        if isinstance(node.value, str):
            yield node.value
    elif isinstance(node, ast.Call):
        if isinstance(node.func, ast.Attribute) and node.func.attr in ("strip", "rstrip"):
            yield from texts_in(node.func.value)
        elif isinstance(node.func, ast.Name) and node.func.id == "gettext_noop":
            yield from texts_in(node.args[0])
    elif isinstance(node, ast.IfExp):
        yield from (*texts_in(node.body), *texts_in(node.orelse))
    elif isinstance(node, ast.BinOp):
        yield from texts_in(node.left)


def written_notes() -> dict[str, str]:
    """The notes that the code writes, with the files that do."""
    found = {}
    for path, module in modules():
        names = {"note", "title"}
        for node in ast.walk(module):
            values: list[ast.AST] = []
            if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
                values = [node.value] if node.targets[0].id in names else []
            elif isinstance(node, ast.Call):
                name = getattr(node.func, "id", getattr(node.func, "attr", ""))
                if RECORDERS.fullmatch(name):
                    values = [one.value for one in node.keywords if one.arg == "note"]
                    values += [
                        one
                        for one in node.args
                        if isinstance(one, ast.JoinedStr | ast.Constant)
                        or getattr(getattr(one, "func", None), "id", "") == "gettext_noop"
                    ]
            for text in (text for value in values for text in texts_in(value)):
                if re.search("[A-Za-z]{3}", text):
                    found[text] = str(path)
    return found


def written_properties() -> dict[str, str]:
    """The names of the properties that the code records."""
    found = {}
    for path, module in modules():
        for node in ast.walk(module):
            is_changes = isinstance(node, ast.keyword) and node.arg == "changes"
            dicts = [node.value] if is_changes else []  # type: ignore[attr-defined]
            if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "record_changes":
                dicts = [one for one in ast.walk(node) if isinstance(one, ast.Dict)]
            for one in dicts:
                for part in ast.walk(one):
                    for key in part.keys if isinstance(part, ast.Dict) else ():
                        if isinstance(key, ast.Constant):
                            found[str(key.value)] = str(path)
    return found


def test_each_note_of_the_service_is_in_the_language_of_the_reader() -> None:
    notes = written_notes()
    assert {"Sign-in unlocked", "Codes left: 5", "Role changed", "Started"} <= set(notes)
    with translation.override("de"):
        english = {
            f"{text} ({path})"
            for text, path in notes.items()
            if note_text(text) == text
            and text not in SAME | UNWRITTEN
            and not any(one.startswith(f"{text}, ") for one in NOTES)
        }
    assert sorted(english) == []


def test_each_property_that_the_service_records_has_a_name_in_german() -> None:
    columns = {field.name: model for model in apps.get_models() for field in model._meta.fields}
    properties = written_properties()
    assert {"needs_factors", "fields", "booking_reference"} <= properties.keys()
    with translation.override("de"):
        english = {
            name: path
            for name, path in properties.items()
            if name not in columns | PROPERTIES
            and property_name("", name) == name.replace("_", " ")
            and name not in SAME
        }
    assert not english


@pytest.mark.parametrize(
    ("note", "german"),
    [
        ("Codes: 2. Moved to hold 7. unreadable", "Codes: 2. In Sperre 7 verschoben. unreadable"),
        ("Codes: 12. Expired before 2026-11-28", "Codes: 12. Abgelaufen vor dem 28.11.2026"),
        ("Codes: 5. Asked by a, confirmed by b", "Codes: 5. Beantragt von a, bestätigt von b"),
        ("Role changed, From: Viewer, To: Owner", "Rolle geändert, von: Betrachter, zu: Inhaber"),
        ("products: 2 created, 1 updated", "Produkte: 2 neu, 1 geändert"),
        ("1234.50 USD", "1.234,50 USD"),
        ("called the merchant", "called the merchant"),
        (
            "Sessions ended: 1. Invitations withdrawn: 0. Claims back in the queue: 0."
            " Requests for a second person ended: 2.",
            "Beendete Sitzungen: 1. Zurückgezogene Einladungen: 0. Bestellungen zurück in der"
            " Warteschlange: 0. Beendete Anfragen an eine zweite Person: 2.",
        ),
    ],
)
def test_a_note_is_whole_in_german(note: str, german: str) -> None:
    with translation.override("de"):
        assert note_text(note) == german
    assert note_text(note) == (note if "USD" not in note else "1,234.50 USD")


def test_changed_values_are_in_the_formats_of_the_reader() -> None:
    entry = Entry(
        at=timezone.now(),
        what="",
        on=("catalogue.pricelistentry", "1"),
        changes={"percent_off": (None, str(Decimal("2.5")))},
    )
    fields = Entry(
        at=timezone.now(),
        what="",
        on=("topups.topupproduct", "1"),
        changes={"fields": ("", "server (Server, dropdown: EU / NA, optional), id (Id, number)")},
    )
    with translation.override("de"):
        assert change_texts(entry, {})[0][2] == "2,5"
        (_name, _old, new) = change_texts(fields, {})[0]
    assert new == "server (Server, Auswahlliste: EU / NA, optional), id (Id, Zahl)"
    assert change_texts(entry, {})[0][2] == "2.5"
