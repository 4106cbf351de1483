"""A merchant checks a statement with our program: nobody changed an entry since it was signed."""

import copy
import json
import subprocess
import sys
from datetime import datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from django.test import Client
from django.utils import timezone

from merchants.docs.docs_content import SNIPPETS
from tests.concurrency.racing import execute
from tests.factories import Merchant, adjust, make_merchant, make_product
from tests.merchants.people import browser_of, make_member
from tests.wallets.test_ledger_chain import FORGE
from wallets.evidence.roots import Root, public_key, sign_ledger
from wallets.models import LedgerEntry

pytestmark = pytest.mark.django_db(transaction=True)

ADDRESS = "/merchant/wallet/signed-statement.json"


@pytest.fixture
def merchant() -> Merchant:
    """Some entries, a root over several wallets, and an entry that is not signed yet."""
    merchant = make_merchant()
    product = make_product(price="1.25", codes=9)
    for number in range(4):
        assert merchant.buy(str(number), product_id=product.pk, quantity=1).status_code == 201
    account = merchant.account
    adjust(account=account, amount=Decimal("2.5"), actor="admin:anna", note="not for you")
    make_merchant()
    sign_ledger()
    assert merchant.buy("late", product_id=product.pk, quantity=1).status_code == 201
    return merchant


@pytest.fixture
def browser(merchant: Merchant) -> Client:
    account = merchant.account
    return browser_of(make_member(account))


def download(browser: Client, query: str = "") -> dict[str, Any]:
    answer = browser.get(f"{ADDRESS}{query}")
    assert answer.status_code == 200, answer
    assert answer["Content-Disposition"] == 'attachment; filename="signed-statement.json"'
    signed: dict[str, Any] = json.loads(answer.content)
    return signed


def verified(folder: Path, signed: Any, key: str = "") -> tuple[int, str]:
    """The exit code of the program that merchants run, and its line."""
    file = folder / "signed-statement.json"
    file.write_text(signed if isinstance(signed, str) else json.dumps(signed))
    ran = subprocess.run(
        [
            *(sys.executable, "-I", SNIPPETS / "verify_statement.py", file),
            *("--key", key or public_key().hex()),
        ],
        capture_output=True,
        text=True,
        check=False,
    )
    return ran.returncode, (ran.stdout + ran.stderr).strip()


def test_a_statement_shows_what_was_signed(
    browser: Client, merchant: Merchant, tmp_path: Path
) -> None:
    signed = download(browser)

    assert [one["kind"] for one in signed["entries"]] == [
        *("deposit", "purchase", "purchase", "purchase", "purchase", "adjustment"),
    ]
    code, line = verified(tmp_path, signed)
    assert (code, line[:14]) == (0, "OK: 6 entries "), line
    assert "balance 0.0000 before and 97.5000 USD after, as signed in root 1" in line
    text = json.dumps(signed)
    for hidden in ("anna", "not for you", "booking ", merchant.key):
        assert hidden not in text


def test_a_period_proves_its_entries(browser: Client, merchant: Merchant, tmp_path: Path) -> None:
    ids = list(
        LedgerEntry.objects.filter(wallet=merchant.client.account_id)
        .order_by("pk")
        .values_list("pk", flat=True)
    )
    execute("SET session_replication_role = replica")
    for days, pk in zip((5, 4, 3, 2, 1), ids, strict=False):
        # The time is in the hash: moved with the triggers off, the chain is written again below.
        moved = timezone.now() - timedelta(days=days)
        execute("UPDATE wallets_ledgerentry SET created_at = %s WHERE id = %s", moved, pk)
    execute(FORGE)
    execute("DELETE FROM wallets_rootleaf")
    execute("DELETE FROM wallets_signedroot")
    execute("SET session_replication_role = origin")
    sign_ledger()
    since, until = (timezone.now().date() - timedelta(days=days) for days in (4, 2))

    signed = download(browser, f"?since={since}&until={until}")

    assert [one["id"] for one in signed["entries"]] == ids[1:4]
    assert len(signed["later"]) == len(ids) - 4
    assert verified(tmp_path, signed)[0] == 0


def test_each_forgery_is_found(browser: Client, tmp_path: Path) -> None:
    good = download(browser)
    forgeries: dict[str, Any] = {}

    def forge(name: str) -> dict[str, Any]:
        made: dict[str, Any] = copy.deepcopy(good)
        forgeries[name] = made
        return made

    forge("a changed amount")["entries"][2]["amount"] = "-1.2400"
    forge("a changed note")["entries"][5]["note"] = "yours"
    forge("a changed order")["entries"][1]["order_reference"] = "X"
    forge("a changed time")["entries"][1]["time"] = "2026-01-01T00:00:00.000000Z"
    forge("a changed hidden part")["entries"][5]["hidden"] = "0" * 64
    both = forge("a changed amount with its balances")["entries"]
    both[1]["amount"] = "-1.0000"
    for entry in both[1:]:
        entry["balance_after"] = str(Decimal(entry["balance_after"]) + Decimal("0.25"))
    del forge("a removed entry")["entries"][2]
    del forge("a removed first entry")["entries"][0]
    del forge("a removed last entry")["entries"][-1]
    swapped = forge("a swapped order")["entries"]
    swapped[1], swapped[2] = swapped[2], swapped[1]
    renumbered = forge("a swapped order with its numbers and balances")["entries"]
    for field in ("time", "order_reference", "hidden"):
        renumbered[1][field], renumbered[2][field] = renumbered[2][field], renumbered[1][field]
    forge("another wallet")["wallet"] += 1
    forge("another start")["start"] = "0" * 64
    forge("another way to the root")["path"] = []
    forge("another root")["root"]["root"] = "0" * 64
    forge("a later root")["root"]["number"] = 2
    forge("no entries")["entries"] = []
    forge("another format")["format"] = "v2"

    mine = Ed25519PrivateKey.generate()
    own = forge("a root signed by somebody else")
    own["entries"][5]["note"] = "yours"
    root = own["root"]
    statement = Root(
        number=root["number"],
        signed_at=datetime.fromisoformat(root["signed_at"]),
        previous=bytes.fromhex(root["previous"]),
        wallets=root["wallets"],
        root=bytes.fromhex(root["root"]),
        public_key=b"",
    ).statement()
    root["signature"] = mine.sign(statement).hex()
    root["public_key"] = mine.public_key().public_bytes_raw().hex()

    accepted = {}
    for name, signed in forgeries.items():
        code, line = verified(tmp_path, signed)
        if code != 1 or not line.startswith("WRONG: ") or "\n" in line:
            accepted[name] = line
    assert accepted == {}
    assert verified(tmp_path, "[]")[0] == verified(tmp_path, good, key="00" * 31)[0] == 1
    assert verified(tmp_path, good)[0] == 0


def test_entries_that_are_not_signed_yet_are_left_out(browser: Client) -> None:
    tomorrow = timezone.now().date() + timedelta(days=1)
    answer = browser.get(f"{ADDRESS}?since={tomorrow}", follow=True)
    assert "No entry of this period is signed yet." in answer.content.decode()

    fresh = make_merchant().client.account
    assert fresh
    answer = browser_of(make_member(fresh)).get(ADDRESS)
    assert answer.status_code == 302


def test_everybody_reads_the_key_and_the_program(client: Client) -> None:
    assert client.get("/docs/ledger-key").content.decode() == public_key().hex() + "\n"
    program = client.get("/docs/verify_statement.py").content.decode()
    assert program == (SNIPPETS / "verify_statement.py").read_text()
