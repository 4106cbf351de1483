"""Nobody changes the ledger unnoticed, not even the owner of the database."""

import json
import os
import subprocess
import sys
from dataclasses import replace
from datetime import timedelta
from decimal import Decimal
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from django.utils import timezone

from core.inputs import InputProblem
from embedded.environment import PROJECT
from operators.upkeep.reconcile import reconcile
from orders.remedies.credits import credit_order
from tests.concurrency.racing import execute, race, scalar
from tests.factories import (
    Merchant,
    adjust,
    buy_topup,
    make_merchant,
    make_operator,
    make_product,
    move_now,
    new_booking_reference,
)
from tests.live import database_url
from tests.metrics.scraping import scrape_service, value
from topups.fulfilment.refunds import sweep_refunds
from topups.fulfilment.transitions import Move
from topups.models import Channel
from wallets import tasks
from wallets.evidence.chain import merkle_root
from wallets.evidence.roots import FIRST, leaves_of, sign_if_due, sign_ledger, stored_root
from wallets.evidence.verification import verify_ledger
from wallets.models import RootLeaf, SignedRoot

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("alone")]

OVERDUE = 28 * 3600  # seconds
NOTE = "Für |Ärger| 5:x „Anna“ €"
CHAIN = "each entry continues the hash chain of its wallet"
UNSIGNED = "root {} does not carry our signature"
UNLINKED = "root {} does not follow the root before it"
UNFIT = "root {} does not fit the ledger: an entry before it was changed"
# Each changes one entry, and the balances of the wallet still add up.
DAMAGE = {
    "another note": "UPDATE wallets_ledgerentry SET note = 'x' WHERE kind = 'credit'",
    "a note that the merchant does not see": (
        "UPDATE wallets_ledgerentry SET note = 'x' WHERE kind = 'adjustment'"
    ),
    "another actor": "UPDATE wallets_ledgerentry SET actor = 'x' WHERE kind = 'deposit'",
    "another booking reference": (
        "UPDATE wallets_ledgerentry SET booking_reference = 'x' WHERE kind = 'deposit'"
    ),
    "another time": (
        "UPDATE wallets_ledgerentry SET created_at = created_at - interval '1 us'"
        " WHERE kind = 'refund'"
    ),
    "another order": ("UPDATE wallets_ledgerentry SET order_reference = 'x' WHERE kind = 'credit'"),
    "two entries that changed places": (
        "UPDATE wallets_ledgerentry SET id = -id WHERE kind IN ('refund', 'credit');"
        " UPDATE wallets_ledgerentry AS one SET id = (SELECT -id FROM wallets_ledgerentry AS other"
        " WHERE other.id < 0 AND other.id <> one.id) WHERE id < 0"
    ),
    "an entry taken out": "DELETE FROM wallets_ledgerentry WHERE kind = 'credit'",
    "a hash taken out": (
        "ALTER TABLE wallets_ledgerentry ALTER chain DROP NOT NULL;"
        " UPDATE wallets_ledgerentry SET chain = NULL WHERE kind = 'credit'"
    ),
    "a salt taken out": "UPDATE wallets_ledgerentry SET salt = NULL WHERE kind = 'credit'",
}
# Writes the chain of every wallet again, as the owner of the database could.
FORGE = """
DO $$
DECLARE
    entry wallets_ledgerentry;
    wallet bigint := 0;
    value bytea;
BEGIN
    FOR entry IN SELECT * FROM wallets_ledgerentry ORDER BY wallet_id, id LOOP
        IF entry.wallet_id <> wallet THEN
            value := NULL;
            wallet := entry.wallet_id;
        END IF;
        value := wallets_chained(value, wallet,
            wallets_shown_fields(wallet, entry.kind, entry.counterpart, entry.amount,
                                 entry.created_at, entry.order_reference, entry.note),
            entry.balance_after,
            wallets_hidden_hash(entry.salt, entry.actor, entry.booking_reference, entry.note,
                                entry.reason));
        UPDATE wallets_ledgerentry SET chain = value WHERE id = entry.id;
        UPDATE wallets_wallet SET chain = value WHERE account_id = wallet;
    END LOOP;
END $$
"""


def damage(*statements: str) -> None:
    """Runs statements with all triggers off, as only a superuser can."""
    execute("SET session_replication_role = replica")
    for statement in statements:
        execute(statement)
    execute("SET session_replication_role = origin")


@pytest.fixture
def busy() -> Merchant:
    """A merchant with an entry of each kind, and texts that need care."""
    merchant = make_merchant()
    product = make_product(price="1.25", codes=3)
    bought = merchant.buy("one", product_id=product.pk, quantity=1).json()["data"]["reference"]
    move_now(reference=buy_topup(merchant), move=Move.REJECT, operator=make_operator())
    assert sweep_refunds() == 1
    credit_order(
        reference=bought,
        amount=Decimal("0.5"),
        note=NOTE,
        actor="admin:anna",
        channel=Channel.COMMAND,
        booking_reference=new_booking_reference(),
    )
    account = merchant.account
    adjust(account=account, amount=Decimal("-0.0001"), note="for us")
    return merchant


def chain_findings() -> list[str]:
    return [one["finding"] for one in reconcile()["findings"] if one["check"] == CHAIN]


def test_python_computes_the_hashes_of_the_database(busy: Merchant) -> None:
    sign_ledger()
    result = verify_ledger()

    assert result == {"ok": True, "entries": 6, "roots": 1, "logged": 0, "findings": []}
    assert reconcile(decrypt=True)["findings"] == []
    assert scalar("SELECT count(*) FROM wallets_ledgerentry WHERE length(chain) <> 32") == 0


def test_each_change_of_an_entry_is_found(busy: Merchant) -> None:
    sign_ledger()
    execute("CREATE TABLE kept.entries AS TABLE wallets_ledgerentry")
    missed = []
    try:
        for name, statement in DAMAGE.items():
            damage(statement)
            if not chain_findings():
                missed.append(("reconcile", name))
            if verify_ledger()["ok"]:
                missed.append(("verify_ledger", name))
            damage(
                "DELETE FROM wallets_ledgerentry",
                "INSERT INTO wallets_ledgerentry SELECT * FROM kept.entries",
                "ALTER TABLE wallets_ledgerentry ALTER chain SET NOT NULL",
            )
    finally:
        execute("DROP TABLE kept.entries")

    assert missed == []
    assert verify_ledger()["ok"]
    assert chain_findings() == []


def test_a_wallet_holds_the_hash_of_its_last_entry(busy: Merchant) -> None:
    damage("DELETE FROM wallets_ledgerentry WHERE id = (SELECT max(id) FROM wallets_ledgerentry)")

    found = {one["check"] for one in reconcile()["findings"]}
    assert "each wallet holds the hash of its last entry" in found


def test_a_forged_history_fits_no_root(busy: Merchant) -> None:
    """The owner of the database changes an amount and computes every hash again."""
    sign_ledger()
    forge()

    assert chain_findings() == []
    assert verify_ledger()["findings"] == [UNFIT.format(1)]


def forge() -> None:
    damage(
        "UPDATE wallets_ledgerentry SET note = 'never promised' WHERE kind = 'credit'",
        FORGE,
    )


def logged(file: Path) -> Path:
    """Signs the ledger in a process of the service, and keeps what it logs."""
    ran = subprocess.run(
        [sys.executable, "manage.py", "sign_ledger"],
        cwd=PROJECT,
        env={**os.environ, "DATABASE_URL": database_url(), "LOG_LEVEL": "ERROR"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    assert json.loads(ran.stdout)["signed"] is True
    # As a collector keeps it: text in front, and other lines around.
    file.write_text(f"other line\n2026-11-22 worker: {ran.stderr.strip()}\n")
    return file


def test_roots_that_left_the_host_betray_what_the_database_hides(
    busy: Merchant, tmp_path: Path
) -> None:
    log = logged(tmp_path / "worker.log")
    assert verify_ledger(files=[log])["ok"]

    forge()
    damage("DELETE FROM wallets_rootleaf", "DELETE FROM wallets_signedroot")
    assert verify_ledger()["ok"], "without the log, nothing is left to compare with"
    assert verify_ledger(files=[log])["findings"] == [f"{log}:2: root 1 is missing in the database"]
    sign_ledger()
    assert verify_ledger(files=[log])["findings"] == [
        f"{log}:2: root 1 differs from the one in the database"
    ]

    forged = tmp_path / "forged.log"
    forged.write_text(log.read_text().replace('"wallets":1', '"wallets":2'))
    (finding,) = verify_ledger(files=[forged])["findings"]
    assert finding == f"{forged}:2: {UNSIGNED.format(1)}"

    forged.write_text(log.read_text().replace('"wallets":1', '"wallets":"one"'))
    with pytest.raises(InputProblem, match=r"forged\.log:2: this line is damaged"):
        verify_ledger(files=[forged])

    (tmp_path / "empty.log").write_text("nothing\n")
    with pytest.raises(InputProblem, match="no line of a root"):
        verify_ledger(files=[tmp_path / "empty.log"])


def test_a_root_follows_the_one_before_and_has_leaves_of_wallets_that_moved(
    busy: Merchant,
) -> None:
    sign_ledger()
    other = make_merchant()
    sign_ledger()
    sign_ledger()

    assert list(RootLeaf.objects.order_by("pk").values_list("root", "wallet")) == [
        (1, busy.client.account_id),
        (2, other.client.account_id),
    ]
    assert list(SignedRoot.objects.order_by("number").values_list("wallets", flat=True)) == [
        1,
        2,
        2,
    ]
    assert verify_ledger()["ok"]

    damage("UPDATE wallets_signedroot SET signature = '' WHERE number = 2")
    check = "each root of the ledger carries our signature"
    assert check in {one["check"] for one in reconcile(decrypt=True)["findings"]}
    damage("DELETE FROM wallets_signedroot WHERE number = 2")
    gap = "the signed roots are numbered without gaps, and each leaf is an entry of its wallet"
    assert gap in {one["check"] for one in reconcile()["findings"]}


# What somebody does who can write to every table, and what the verifier then says. None of it
# changes an entry.
CHANGED_ROOTS = {
    "left out": ("DELETE FROM wallets_signedroot WHERE number = 2", [UNLINKED.format(3)]),
    "the first left out": (
        "DELETE FROM wallets_signedroot WHERE number = 1",
        [UNLINKED.format(2), UNFIT.format(2), UNFIT.format(3)],
    ),
    "left out, and the next has its number": (
        "DELETE FROM wallets_signedroot WHERE number = 2;"
        " UPDATE wallets_signedroot SET number = 2 WHERE number = 3",
        [UNSIGNED.format(2), UNLINKED.format(2)],
    ),
    "put in another order": (
        "UPDATE wallets_signedroot SET number = -number WHERE number > 1;"
        " UPDATE wallets_signedroot SET number = 5 + number WHERE number < 0",
        [UNSIGNED.format(2), UNLINKED.format(2), UNSIGNED.format(3), UNLINKED.format(3)],
    ),
    "dated back": (
        "UPDATE wallets_signedroot SET signed_at = signed_at - interval '1 day' WHERE number = 3",
        [UNSIGNED.format(3)],
    ),
    "linked to nothing": (
        "UPDATE wallets_signedroot SET previous = '' WHERE number = 3",
        [UNSIGNED.format(3), UNLINKED.format(3)],
    ),
}


@pytest.mark.parametrize("change", CHANGED_ROOTS)
def test_a_changed_root_is_found(busy: Merchant, change: str) -> None:
    for _ in range(3):
        sign_ledger()
    statements, findings = CHANGED_ROOTS[change]
    damage(*statements.split(";"))

    assert verify_ledger()["findings"] == findings


def test_a_root_of_ours_in_the_place_of_another_is_found(busy: Merchant) -> None:
    """The database was set back, and root 2 signed again. Both roots 2 carry our signature."""
    sign_ledger()
    sign_ledger()
    execute("CREATE TABLE kept.root AS TABLE wallets_signedroot")
    try:
        damage("DELETE FROM wallets_signedroot WHERE number = 2")
        sign_ledger()
        sign_ledger()
        assert verify_ledger()["ok"]
        damage(
            "DELETE FROM wallets_signedroot WHERE number = 2",
            "INSERT INTO wallets_signedroot SELECT * FROM kept.root WHERE number = 2",
        )
        assert verify_ledger()["findings"] == [UNLINKED.format(3)]
    finally:
        execute("DROP TABLE kept.root")


@pytest.mark.parametrize("signer", ["nobody", "another key"])
def test_roots_that_fit_a_forged_history_do_not_carry_our_signature(
    busy: Merchant, signer: str
) -> None:
    """Each root is computed again for the forged ledger, and linked to the one before."""
    for _ in range(2):
        sign_ledger()
    forge()
    key = Ed25519PrivateKey.generate()
    previous = FIRST
    for row in SignedRoot.objects.order_by("number"):
        root = replace(
            stored_root(row),
            previous=previous,
            root=merkle_root([leaf.hash() for leaf in leaves_of(row.number)]),
        )
        if signer == "another key":
            public = key.public_key().public_bytes(Encoding.Raw, PublicFormat.Raw)
            root = replace(root, public_key=public, signature=key.sign(root.statement()))
        damage(
            f"UPDATE wallets_signedroot SET previous = '\\x{root.previous.hex()}',"
            f" root = '\\x{root.root.hex()}', public_key = '\\x{root.public_key.hex()}',"
            f" signature = '\\x{root.signature.hex()}' WHERE number = {root.number}"
        )
        previous = root.digest()

    assert verify_ledger()["findings"] == [UNSIGNED.format(1), UNSIGNED.format(2)]


def test_one_root_a_day_also_of_two_workers_at_once(busy: Merchant) -> None:
    now = timezone.now()
    race([lambda: sign_if_due(now)] * 3)
    assert SignedRoot.objects.count() == 1
    assert sign_ledger(due_at=now) is None, "another worker signed after this one asked"
    assert sign_if_due(now + timedelta(hours=22)) is None
    assert sign_if_due(now + timedelta(hours=24)) is not None


def test_a_root_of_the_future_is_followed_by_one_of_today(busy: Merchant) -> None:
    """The clock was a year ahead when the newest root was signed."""
    assert root_age() < OVERDUE, "a new installation has a day"
    sign_ledger()
    damage("UPDATE wallets_signedroot SET signed_at = signed_at + interval '1 year'")
    assert root_age() > OVERDUE

    now = timezone.now()
    root = sign_if_due(now)

    assert root is not None
    assert abs(root.signed_at - now) < timedelta(minutes=1)
    assert root_age() < 60
    assert sign_if_due(now) is None


def root_age() -> float:
    age = value(scrape_service(), "voucher_ledger_root_age_seconds")
    assert age is not None
    return age


def test_the_clock_of_a_worker_signs_no_root(monkeypatch: pytest.MonkeyPatch) -> None:
    tasks.sign_ledger()
    ahead = timezone.now() + timedelta(days=365)
    monkeypatch.setattr(timezone, "now", lambda: ahead)
    tasks.sign_ledger()

    assert SignedRoot.objects.count() == 1


@pytest.mark.parametrize("table", ["signedroot", "rootleaf"])
def test_what_was_signed_stays(busy: Merchant, table: str) -> None:
    change = "signature = ''" if table == "signedroot" else "last_entry = 0"
    for statement in ("DELETE FROM {}", "TRUNCATE {} CASCADE", f"UPDATE {{}} SET {change}"):
        with pytest.raises(Exception, match="append-only"):
            execute(statement.format(f"wallets_{table}"))
