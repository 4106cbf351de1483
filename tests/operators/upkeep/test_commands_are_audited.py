"""Every command that changes something records who did it.

The tables below are complete: a new command fails until it has a row.
"""

import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from django.core.management import call_command
from django.db.models import Q
from pytest_django import Settings

from catalogue.models import PriceList
from catalogue.stock.holds import hold_codes
from operators.imports.demo.shop import CATALOGUE
from operators.sign_in.models import CompanyIdentity
from tests.browsing import PASSWORD
from tests.commands import run
from tests.factories import (
    buy_topup,
    make_account,
    make_batch,
    make_client,
    make_key,
    make_lost_purchase,
    make_merchant,
    make_operator,
    make_product,
    own_shelf,
)
from tests.flushing import empty_tables
from tests.operators.back_office import make_staff, signed_in
from tests.operators.records import Watch, failed_order

pytestmark = pytest.mark.django_db


def codes_file(folder: Path) -> str:
    path = folder / "codes.csv"
    path.write_text("code\nONE\n")
    return str(path)


def catalogue_file(folder: Path) -> str:
    path = folder / "catalogue.json"
    path.write_text(json.dumps(CATALOGUE))
    return str(path)


def rates_file(folder: Path) -> str:
    path = folder / "rates.csv"
    path.write_text("currency,into,day,rate\nEUR,USD,2026-01-01,1.08\n")
    return str(path)


def prices_file(folder: Path) -> str:
    path, row = folder / "prices.csv", PriceList.objects.create(name="Gold", currency="USD")
    path.write_text(
        "price_list,about,id,terms,price,percent_off,currency,since,until\n"
        f"{row.pk},everything,,regular,,,USD,,\n"
    )
    return str(path)


def key_prefix() -> str:
    return make_key(make_client(make_account())).split("_")[1]


def claim_words() -> list[Any]:
    reference = buy_topup(make_merchant())
    version = run("fulfilment", "show", reference)["version"]
    operator = make_operator().user.username
    return ["claim", reference, "--version", version, "--operator", operator]


def protected_user() -> str:
    user = make_staff()
    signed_in(user)
    return user.username


def stocked(word: str) -> str:
    make_product(codes=1)
    return word


def hold_all() -> int:
    number: int = run("hold_codes", stocked("--all"))["hold"]
    return number


def hold_in_back_office() -> int:
    stocked("--all")
    hold, _ = hold_codes(codes=Q(), reason="recalled", held_by="admin:stan")
    assert hold is not None
    return hold.pk


def new_batch() -> int:
    return make_batch(own_shelf(make_product())).pk


def settle_words() -> list[Any]:
    make_lost_purchase(make_client(make_account()))
    return ["settle", "--all", "--no-debit", "--note", "x"]


def company_member() -> str:
    user = make_staff()
    CompanyIdentity.objects.create(user=user, issuer="https://id.example", subject="1")
    return user.username


def former_staff() -> str:
    user = make_staff()
    user.is_active = False
    user.save()
    return user.username


def into_empty_database() -> list[str]:
    empty_tables()
    return ["--no-history"]


# The arguments of each command that changes something, and the record it leaves.
COMMANDS: dict[str, tuple[Callable[[Path], list[Any]], str]] = {
    "delete_old_data": (lambda folder: ["--apply"], "audit"),
    "person": (lambda folder: ["delete", "name", former_staff(), "--apply"], "audit"),
    "unlink_company_account": (lambda folder: [company_member()], "audit"),
    "create_account": (lambda folder: ["Acme"], "audit"),
    "create_client": (lambda folder: ["Shop"], "audit"),
    "set_account": (lambda folder: [make_account().pk, "--disable"], "audit"),
    "set_client": (lambda folder: [make_client().pk, "--rate-limit", "7"], "audit"),
    "rotate_key": (lambda folder: [make_client(make_account()).pk], "audit"),
    "revoke_key": (lambda folder: [key_prefix()], "audit"),
    "deposit": (lambda folder: [make_account().pk, "5", "--reference", "a"], "audit"),
    "payout": (lambda folder: [make_account().pk, "5", "--reference", "a"], "audit"),
    "credit_order": (
        lambda folder: [failed_order(), "1", "--reference", "a", "--note", "x"],
        "audit",
    ),
    "lost_purchases": (lambda folder: settle_words(), "audit"),
    "hold_codes": (lambda folder: [stocked("--all")], "audit"),
    "release_codes": (lambda folder: [hold_all()], "audit"),
    "void_codes": (lambda folder: [hold_in_back_office()], "audit"),
    "take_import_back": (lambda folder: [new_batch(), "--reason", "x"], "audit"),
    "import_codes": (lambda folder: [make_product().pk, codes_file(folder)], "audit"),
    "export_catalogue": (lambda folder: [str(folder / "catalogue.csv")], "audit"),
    "import_catalogue": (lambda folder: [catalogue_file(folder)], "audit"),
    "import_exchange_rates": (lambda folder: [rates_file(folder)], "audit"),
    "import_price_lists": (lambda folder: [prices_file(folder)], "audit"),
    "link_reference": (lambda folder: [make_account().pk, "name", make_product().pk], "audit"),
    "fulfilment": (lambda folder: claim_words(), "history"),
    "forget_second_factors": (lambda folder: [protected_user()], "audit"),
    "link_telegram": (lambda folder: [make_operator().user.username, 7], "audit"),
    "load_demo": (lambda folder: into_empty_database(), "audit"),
    "createsuperuser": (lambda folder: ["--noinput", "--username", "x", "--email", ""], "audit"),
    "changepassword": (lambda folder: [make_staff().username], "audit"),
}
# Commands that change nothing a person decides.
OTHERS = {
    "check_recovery": "notes when copies were seen outside, its own record; `--forget` is recorded",
    "export_evidence": "writes files of records",
    "verify_evidence": "reads",
    "cleanup_idempotency": "deletes expired records; Celery beat also runs it",
    "reconcile": "reads",
    "reseal": "changes the encryption of values, and no value",
    "migrate": "changes tables; Django records each migration",
    "run_metrics": "is a process that reads",
    "show_monitoring": "prints what the apps declare",
    "show_version": "reads",
    "sign_ledger": "adds a signed root, which is its own record; Celery beat also runs it",
    "verify_ledger": "reads",
    "run_bot": "is a process; each press is recorded",
    "sweep_announcements": "sends what is due; Celery beat also runs it",
    "sweep_refunds": "books due refunds in the ledger; Celery beat also runs it",
}


def test_the_table_names_every_command() -> None:
    project = Path(__file__).parents[3]
    commands = "management/commands/[a-z]*.py"
    files = [*project.glob(f"*/{commands}"), *project.glob(f"operators/*/{commands}")]
    ours = {path.stem for path in files}
    assert ours | {"createsuperuser", "changepassword"} == set(COMMANDS) | set(OTHERS)


@pytest.mark.parametrize("name", sorted(COMMANDS))
def test_each_command_is_recorded(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, settings: Settings
) -> None:
    settings.VAR_DIR = tmp_path
    monkeypatch.setenv("DJANGO_SUPERUSER_PASSWORD", PASSWORD)
    monkeypatch.setattr("getpass.getpass", lambda prompt="": "quite another battery staple")
    arguments, kind = COMMANDS[name]
    words, watch = [str(word) for word in arguments(tmp_path)], Watch()

    call_command(name, *words, stdout=io.StringIO(), stderr=io.StringIO())

    assert watch.added(kind) != []
