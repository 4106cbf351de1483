"""No app names a higher app in a string: no table, permission, label, template, module or URL.

`lint-imports` holds imports to the layers and cannot see strings. This reads the same layers from
the contract in pyproject.toml, so there is one list of them.
"""

import ast
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest
from django.apps import apps

from core.api.errors import ErrorCode

ROOT = Path(__file__).resolve().parents[2]
LINTER = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]
# Each layer is a list of packages; the highest comes first.
LAYERS = [
    layer.split(" | ")
    for contract in LINTER["contracts"]
    if contract["name"] == "Imports run one way"
    for layer in contract["layers"]
]
PACKAGES = [package for layer in LAYERS for package in layer]
# `config` puts the service together and names every app. The others stand beside the service.
APART = {"config", "embedded", "labs", "sdk", "simulator", "tests"}
# The wings of `operators` are apps with labels of their own: their tables and models.
WINGS = [
    re.escape(name)
    for model in apps.get_models()
    if model.__module__.startswith("operators.")
    for name in (model._meta.db_table, model._meta.label_lower)
]
# Codes of the contract, and the column of its header, which only look like the name of a table.
CONTRACT_WORDS = {*(code.value for code in ErrorCode), "idempotency_key"}


def packages_out_of_reach(package: str) -> list[str]:
    """The packages that this one must not name: all in higher layers, and its neighbours."""
    (height,) = [height for height, layer in enumerate(LAYERS) if package in layer]
    return [other for layer in LAYERS[: height + 1] for other in layer if other != package]


def names_in(text: str, packages: list[str]) -> list[str]:
    """The names in the text that belong to one of the packages.

    `orders_order`, `orders.view_order`, `orders:list` and `orders/page.html` belong to `orders`,
    and a text that is nothing but `orders`. `your orders.` and `GET /orders/7` do not. The URLs of
    the Django admin belong to `operators`, and the tables and models of its wings.
    """
    if text in packages:
        return [text]
    pattern = rf"(?:{'|'.join(packages)})[._:/](?=\w)"
    if "operators" in packages:
        pattern += rf"|admin:(?=\w)|(?:{'|'.join(WINGS)})\b"
    found = re.findall(rf"(?<![\w/-])(?:{pattern})[\w.]*", text)
    return [name for name in found if name not in CONTRACT_WORDS]


def texts_of(path: Path) -> Iterator[tuple[int, str]]:
    """Each text of a file that the program uses, with its line: no docstring and no comment."""
    source = path.read_text()
    if path.suffix == ".py":
        yield from strings_of(source)
    else:
        for number, line in enumerate(source.splitlines(), start=1):
            yield number, line.partition("--")[0] if path.suffix == ".sql" else line


def strings_of(source: str) -> Iterator[tuple[int, str]]:
    tree = ast.parse(source)
    docstrings = {
        id(node.body[0].value)
        for node in ast.walk(tree)
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)
        and node.body
        and isinstance(node.body[0], ast.Expr)
    }
    constants = [node for node in ast.walk(tree) if isinstance(node, ast.Constant)]
    for node in constants:
        if isinstance(node.value, str) and id(node) not in docstrings:
            yield node.lineno, node.value


def files_of(package: str) -> list[Path]:
    """The package's Python and SQL files without its migrations, and the templates of its site."""
    code = [*(ROOT / package).rglob("*.py"), *(ROOT / package).rglob("*.sql")]
    templates = [path for path in (ROOT / "templates" / package).rglob("*") if path.is_file()]
    return [path for path in code if "migrations" not in path.parts] + templates


@pytest.mark.parametrize("package", PACKAGES[1:])
def test_no_package_names_a_higher_one(package: str) -> None:
    out_of_reach = packages_out_of_reach(package)
    names = [
        f"{path.relative_to(ROOT)}:{line} names {name}"
        for path in files_of(package)
        for line, text in texts_of(path)
        for name in names_in(text, out_of_reach)
    ]

    assert names == []


def test_every_package_has_its_place() -> None:
    found = {path.parent.name for path in ROOT.glob("*/__init__.py")}

    assert set(LINTER["root_packages"]) == found
    assert {*PACKAGES, *APART} == found


@pytest.mark.parametrize(
    ("source", "found"),
    [
        ('TABLE = "SELECT 1 FROM orders_order"', ["orders_order"]),
        ('PERMISSION = "merchants.view_email"', ["merchants.view_email"]),
        ('URL = f"operators:queue/{1}"', ["operators:queue"]),
        ('URL = reverse("admin:index")', ["admin:index"]),
        ('TABLE = "SELECT 1 FROM telegram_announcement"', ["telegram_announcement"]),
        ('PAGE = "merchants/page.html"', ["merchants/page.html"]),
        ('apps.get_model("orders", "Order")', ["orders"]),
        ('"""Reads orders_order."""', []),
        ('def f():\n    """See orders.models."""', []),
        ('HELP = "Its orders, and your orders. See GET /orders/7."', []),
        ('TABLE = "topups_fulfilment, wallets_wallet"', []),
        ('ACTOR = f"admin:{name}"', []),
    ],
)
def test_the_finder_finds_names_of_higher_apps(source: str, found: list[str]) -> None:
    higher = packages_out_of_reach("topups")

    assert [name for _, text in strings_of(source) for name in names_in(text, higher)] == found


def test_the_image_gets_every_package_of_the_service() -> None:
    copied = (ROOT / ".dockerignore").read_text().split()
    assert [name for name in [*PACKAGES, "config"] if f"!{name}" not in copied] == []
