"""The command `fulfilment`, and the top-up products of the catalogue file."""

import io
import json
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command

from audit.models import AuditEntry
from core.command_line import shell_actor
from tests.factories import Merchant, buy_topup, make_operator, move_now
from tests.neighbour import ours
from topups.fulfilment.transitions import Move
from topups.models import TopUpProduct

pytestmark = pytest.mark.django_db

GEMS: dict[str, Any] = {
    "id": 500,
    "name": "Gems 60",
    "currency": "USD",
    "price": "4.99",
    "available_stock": 10,
    "announce": True,
    "fields": [
        {
            "id": 1,
            "name": "server",
            "label": "Server",
            "type": "dropdown",
            "options": [{"value": "us", "label": "America"}, {"value": "eu"}],
        },
        {"id": 7, "name": "zone", "label": "Zone", "type": "number", "required": False},
    ],
}

TEXT = {"name": "clan", "label": "Clan", "type": "text"}


def run(*words: str) -> dict[str, Any]:
    out = io.StringIO()
    call_command(*words, stdout=out)
    answer: dict[str, Any] = json.loads(out.getvalue())
    return answer


def seen(shown: dict[str, Any]) -> list[str]:
    """The words that name the version which a command printed."""
    return ["--version", str(shown["version"])]


def load(tmp_path: Path, *products: dict[str, Any]) -> dict[str, Any]:
    file = tmp_path / "catalogue.json"
    file.write_text(json.dumps({"topup_products": products}))
    return run("import_catalogue", str(file))


def test_import_creates_products_that_merchants_see(merchant: Merchant, tmp_path: Path) -> None:
    assert load(tmp_path, GEMS)["topup_products"] == {"created": 1, "updated": 0, "unchanged": 0}

    shown = merchant.get("/topup-products/500").json()["data"]

    assert shown == {
        "id": 500,
        "name": "Gems 60",
        "category": None,
        "delivery_type": "top_up",
        "price": 4.99,
        "currency": "USD",
        "available_stock": 10,
        "sellable": True,
        "quantity_step": 1,
        "max_quantity": 1,
        "fields": [
            {
                "id": 1,
                "name": "server",
                "label": "Server",
                "type": "dropdown",
                "required": True,
                "options": [{"value": "us", "label": "America"}, {"value": "eu", "label": None}],
            },
            {
                "id": 7,
                "name": "zone",
                "label": "Zone",
                "type": "number",
                "required": False,
                "options": [],
            },
        ],
    }


def test_second_import_changes_nothing(db: None, tmp_path: Path) -> None:
    load(tmp_path, GEMS)

    assert load(tmp_path, GEMS)["topup_products"] == {"created": 0, "updated": 0, "unchanged": 1}


def test_fields_take_the_order_of_the_file(merchant: Merchant, tmp_path: Path) -> None:
    load(tmp_path, GEMS)
    load(tmp_path, {**GEMS, "fields": list(reversed(GEMS["fields"]))})

    fields = merchant.get("/topup-products/500").json()["data"]["fields"]
    assert [field["id"] for field in fields] == [7, 1]


@pytest.mark.parametrize(
    ("change", "place"),
    [
        ({"price": "0"}, r"topup_products\[0\].price"),
        ({"price": None}, r"topup_products\[0\].price"),
        ({"available_stock": -1}, r"topup_products\[0\].available_stock"),
        ({"category": 77}, r"topup_products\[0\].category"),
        ({"external_provider": ""}, r"topup_products\[0\].external_provider"),
        ({"colour": "red"}, r"topup_products\[0\].colour"),
        (
            {"fields": [{**GEMS["fields"][0], "options": []}]},
            r"topup_products\[0\].fields\[0\].options",
        ),
        (
            {"fields": [{**GEMS["fields"][0], "options": [{"value": "\u200b"}]}]},
            r"topup_products\[0\].fields\[0\].options\[0\].value: Enter text that can be seen",
        ),
        (
            {"fields": [{**GEMS["fields"][0], "options": [{"value": "eu", "label": "\u3164"}]}]},
            r"topup_products\[0\].fields\[0\].options\[0\].label: Enter text that can be seen",
        ),
        (
            {"fields": [GEMS["fields"][1], GEMS["fields"][1]]},
            r"topup_products\[0\].fields\[1\].id: repeats",
        ),
        (
            {"fields": [{**TEXT, "id": n, "name": f"field{n}"} for n in range(1, 32)]},
            r"topup_products\[0\].fields: A top-up product has at most 30 fields",
        ),
    ],
    ids=str,
)
def test_import_names_the_place_of_a_mistake_and_changes_nothing(
    db: None, tmp_path: Path, change: dict[str, Any], place: str
) -> None:
    with pytest.raises(CommandError, match=place):
        load(tmp_path, {**GEMS, **change})

    assert not ours(TopUpProduct).exists()


@pytest.mark.parametrize("between", [[GEMS["fields"][1]], [], GEMS["fields"]])
def test_an_import_never_gives_the_id_of_a_field_to_another(
    db: None, tmp_path: Path, between: list[dict[str, Any]]
) -> None:
    load(tmp_path, GEMS)
    load(tmp_path, {**GEMS, "fields": between})

    with pytest.raises(CommandError, match=r"fields\[0\].id: 1 is the id of the field 'server'"):
        load(tmp_path, {**GEMS, "fields": [{**TEXT, "id": 1}]})

    kept = TopUpProduct.objects.get(pk=500).fields.values_list("name", flat=True)
    assert set(kept) == {field["name"] for field in between}


def test_a_removed_field_can_come_back_under_its_id(merchant: Merchant, tmp_path: Path) -> None:
    load(tmp_path, GEMS)
    load(tmp_path, {**GEMS, "fields": []})
    load(tmp_path, GEMS)

    fields = merchant.get("/topup-products/500").json()["data"]["fields"]
    assert [(field["id"], field["name"]) for field in fields] == [(1, "server"), (7, "zone")]


@pytest.mark.usefixtures("alone")
def test_command_delivers_an_order(merchant: Merchant) -> None:
    operator = make_operator()
    reference = buy_topup(merchant)
    (listed,) = run("fulfilment", "list")["fulfilments"]
    assert (listed["reference"], listed["status"]) == (reference, "pending")

    by = ["--operator", operator.user.username]
    claimed = run("fulfilment", "claim", reference, *seen(listed), *by)
    assert claimed["claimed_by"] == operator.user.username
    assert run("fulfilment", "complete", reference, *seen(claimed), *by)["status"] == "completed"

    assert run("fulfilment", "list") == {"fulfilments": []}
    entry = AuditEntry.objects.get(reference=reference)
    assert (entry.action, entry.actor) == ("topup_delivered", operator.user)
    assert entry.changes["run_by"] == [None, shell_actor()]
    assert merchant.get(f"/orders/{reference}").json()["data"]["status"] == "completed"


def test_a_command_about_an_older_state_changes_nothing(merchant: Merchant) -> None:
    anna, senior = make_operator(username="anna"), make_operator(senior=True)
    reference = buy_topup(merchant)
    shown = run("fulfilment", "show", reference)
    for move in (Move.CLAIM, Move.REVIEW):
        move_now(reference=reference, move=move, operator=anna)

    with pytest.raises(CommandError, match=r"claim by anna, review by anna.*now pending review"):
        run("fulfilment", "reject", reference, *seen(shown), "--operator", senior.user.username)

    now = run("fulfilment", "show", reference)
    assert (now["status"], now["refund_due"]) == ("pending_review", False)


def test_a_repeated_command_reports_the_present_state(merchant: Merchant) -> None:
    by = ["--operator", make_operator().user.username]
    reference = buy_topup(merchant)
    shown = run("fulfilment", "show", reference)

    first = run("fulfilment", "complete", reference, *seen(shown), *by)

    assert run("fulfilment", "complete", reference, *seen(shown), *by) == first
    assert first["status"] == "completed"


def test_sweep_refunds_an_order_rejected_by_command(merchant: Merchant) -> None:
    operator = make_operator()
    reference = buy_topup(merchant)

    rejected = run(
        "fulfilment", "reject", reference, "--reason", "no_stock",
        "--operator", operator.user.username, *seen(run("fulfilment", "show", reference)),
    )  # fmt: skip

    assert (rejected["failure_reason"], rejected["refund_due"]) == ("fulfilment_failed", True)
    assert run("sweep_refunds") == {"refunded": 1, "still_due": 0}
    assert run("sweep_refunds") == {"refunded": 0, "still_due": 0}
    assert merchant.get("/balance").json()["data"]["balance"] == 100


@pytest.mark.parametrize(
    ("words", "line"),
    [
        (["show", "NOPE"], "no top-up order"),
        (["claim", "NOPE", "--version", "1", "--operator", "anna"], "no top-up order"),
        (["claim", "NOPE", "--version", "1", "--operator", "nobody"], "no user 'nobody'"),
        (["claim", "NOPE", "--operator", "anna"], "--version"),
    ],
)
def test_command_reports_what_is_wrong(db: None, words: list[str], line: str) -> None:
    make_operator(username="anna")

    with pytest.raises(CommandError, match=line):
        run("fulfilment", *words)
