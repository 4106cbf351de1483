"""`reconcile` finds nothing in a healthy service, and names whatever is damaged."""

import io
import json
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import datetime, timedelta
from typing import Any

import pytest
from django.core.management import call_command
from django.db import IntegrityError, connection, transaction
from django.db.migrations.recorder import MigrationRecorder
from django.utils import timezone
from pytest_django import Settings

from core.backoffice.declarations import Check
from core.backoffice.periods import Period
from figures.margin_counting import count_margins
from figures.sales_counting import count_sales
from operators.upkeep import nightly_reconcile
from operators.upkeep import reconcile as reconcile_run
from operators.upkeep.models import ReconcileRun, RunState
from operators.upkeep.nightly_reconcile import plan_run
from operators.upkeep.reconcile import (
    CHECKS,
    GUARDS,
    RIGHTS_EXCEEDED,
    RIGHTS_HELD,
    TRIGGERS,
    WARNINGS,
    reconcile,
)
from operators.upkeep.reconcile import _run as run_check
from tests.concurrency.racing import without_triggers
from tests.factories import (
    Merchant,
    buy_topup,
    make_merchant,
    make_operator,
    make_product,
    make_topup_product,
    move_now,
)
from tests.merchants.people import make_member
from tests.operators.upkeep.damage import damaged
from topups.fulfilment.refunds import sweep_refunds
from topups.fulfilment.transitions import Move

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("alone")]


@pytest.fixture
def busy() -> Merchant:
    """A merchant who bought codes, a delivered top-up, a refunded one, and one still open."""
    merchant = make_merchant()
    make_member(merchant.account)
    product = make_product(codes=5)
    topup_product = make_topup_product(available_stock=5)
    for quantity in (1, 2):
        assert merchant.buy(product_id=product.pk, quantity=quantity).status_code == 201
    operator = make_operator()
    for move in (Move.COMPLETE, Move.REJECT, Move.CLAIM):
        move_now(reference=buy_topup(merchant, topup_product), move=move, operator=operator)
    assert sweep_refunds() == 1
    return merchant


ROWS = 3_000_000
ANNOUNCEMENT = (
    "INSERT INTO telegram_announcement (attempts, lost_answers, repeats, repeat_requested, asks,"
    " last_error, fulfilment_id, state, chat_id, message_id, announced_at)"
    " SELECT 1, 0, 0, false, '', '', id,"
)
CREDIT = (
    "INSERT INTO wallets_ledgerentry (wallet_id, kind, counterpart, order_reference,"
    " booking_reference, balance_after, actor, chain, amount)"
    " SELECT account_id, 'credit', 'sales', order_reference, 'b', 0, 'test', '', {}"
)
CASE = (
    "INSERT INTO cases_case (account_id, order_id, paid_order_id, opened_by_id, state, waits_since,"
    " closed_at, decided_by_id) SELECT client.account_id, sale.id, sale.id, -1, {}"
    " FROM orders_order AS sale JOIN accounts_apiclient AS client ON client.id = sale.client_id"
    " WHERE shelf_id IS NOT NULL"
)
CLOSE_OF_WALLETS = (
    "INSERT INTO wallets_walletclose (wallet_id, day, opening, deposits, payouts, adjustments,"
    " purchases, refunds, credits, closing) SELECT account_id, (now() AT TIME ZONE 'UTC')::date,"
    " {0}, 0, 0, 0, 0, 0, 0, {0} FROM wallets_wallet;"
)
CLOSE_OF_DAY = (
    "INSERT INTO wallets_dailyclose (day, currency, wallets, opening, deposits, payouts,"
    " adjustments, purchases, refunds, credits, closing)"
    " SELECT (now() AT TIME ZONE 'UTC')::date, 'USD', 99, 0, 0, 0, 0, 0, 0, 0, 0;"
)
# Each check by name, and the damage that it finds.
OWN_ID = "each field of a top-up product has its own id, and no product has more than 30 fields"
DAMAGE = {
    "no code repeats another but for marks of a spreadsheet": (
        "WITH hold AS (INSERT INTO catalogue_codehold (reason, held_by)"
        " VALUES ('x', 'repeats') RETURNING id)"
        " UPDATE catalogue_vouchercode SET hold_id = (SELECT id FROM hold)"
        " WHERE id = (SELECT min(id) FROM catalogue_vouchercode WHERE order_id IS NULL)"
    ),
    "a close of a wallet agrees with the entries of its day": (
        CLOSE_OF_WALLETS.format(0) + CLOSE_OF_DAY
    ),
    "a close of a wallet begins with the balance of the one before": CLOSE_OF_WALLETS.format(1),
    "the close of a day is the sum of its wallets, and follows that of the day before": (
        CLOSE_OF_DAY
    ),
    "each case has the outcome that it says, and no other": (
        CASE.format("'credited', NULL, now(), -1")
    ),
    "each replacement is a code of the same shelf, for the client that bought the first one": (
        "INSERT INTO orders_order (reference, client_id, number, shelf_id, quantity, codes_mac,"
        " units_per_sale, unit_price, total_price, currency, case_id)"
        " SELECT 'X', client_id, 99, shelf_id, 1, codes_mac, 1, 0, 0, currency, 0"
        " FROM orders_order WHERE shelf_id IS NOT NULL LIMIT 1"
    ),
    "each credit of a case is of the order that was paid": (
        "WITH item AS (" + CASE.format("'credited', NULL, now(), -1") + " LIMIT 1 RETURNING *)"
        " INSERT INTO wallets_ledgerentry (wallet_id, kind, counterpart, order_reference,"
        " booking_reference, balance_after, actor, chain, amount) SELECT account_id, 'credit',"
        " 'sales', 'X', 'credit-of-case:' || id, 0, 'test', '', 1 FROM item"
    ),
    "no order gave back more than it cost, in money and in codes together": (
        "WITH item AS (INSERT INTO cases_case (account_id, order_id, paid_order_id, code_id, state,"
        " opened_by_id, decided_by_id, closed_at, waits_since) SELECT client.account_id, sale.id,"
        " sale.id, code.id, 'replaced', -1, -1, now(), NULL FROM orders_order AS sale"
        " JOIN accounts_apiclient AS client ON client.id = sale.client_id"
        " JOIN catalogue_vouchercode AS code ON code.order_id = sale.id LIMIT 1 RETURNING *)"
        " INSERT INTO wallets_ledgerentry (wallet_id, kind, counterpart, order_reference,"
        " booking_reference, balance_after, actor, chain, amount) SELECT item.account_id, 'credit',"
        " 'sales', paid.reference, 'X', 0, 'test', '', paid.total_price"
        " FROM item JOIN orders_order AS paid ON paid.id = item.paid_order_id"
    ),
    "each case that waits for approval has a credit that waits": (
        CASE.format("'crediting', NULL, NULL, -1")
    ),
    "each outcome of a case has one entry in the audit trail": (
        CASE.format("'rejected', NULL, now(), -1")
    ),
    "no blocked member can sign in": "UPDATE merchants_membership SET blocked_at = now()",
    "a spending limit has counted the orders of its day and month": (
        "UPDATE orders_clientcounter SET limited = true"
    ),
    "each reversal is the opposite of a booking that is no reversal": (
        "UPDATE wallets_ledgerentry SET booking_reference = 'reversal-of-entry:' || id"
        " WHERE kind = 'deposit'"
    ),
    "each booking reference belongs to one booking, compared without case and punctuation": (
        "UPDATE wallets_bookingkey SET key = 'x' WHERE entry_id ="
        " (SELECT min(entry_id) FROM wallets_bookingkey)"
    ),
    "each approved booking is in the ledger as it was asked for": (
        "INSERT INTO wallets_bookingapproval (wallet_id, kind, amount, booking_reference, state,"
        " asked_by_id, expires_at, decided_by_id, decided_at, entry_id)"
        " SELECT wallet_id, kind, amount + 1, booking_reference, 'booked', -1, now(), -2, now(), id"
        " FROM wallets_ledgerentry WHERE kind = 'deposit' LIMIT 1"
    ),
    "each entry continues the hash chain of its wallet": (
        "UPDATE wallets_ledgerentry SET note = 'x' WHERE kind = 'deposit'"
    ),
    "each wallet holds the hash of its last entry": "UPDATE wallets_wallet SET chain = ''",
    "the signed roots are numbered without gaps, and each leaf is an entry of its wallet": (
        "INSERT INTO wallets_signedroot VALUES (2, now(), '', 1, '', '', '')"
    ),
    "a balance is the sum of its entries": "UPDATE wallets_wallet SET balance = balance + 1",
    "each entry continues from the balance of the one before": (
        "UPDATE wallets_ledgerentry SET balance_after = balance_after + 1 WHERE kind = 'deposit'"
    ),
    "each order has its one debit": (
        "UPDATE wallets_ledgerentry SET actor = 'client:0' WHERE kind = 'purchase'"
    ),
    "each booking by staff or a command has one audit entry": (
        "UPDATE wallets_ledgerentry SET actor = 'admin:anna' WHERE kind = 'deposit'"
    ),
    "each audit entry of a booking has its booking": (
        "INSERT INTO audit_auditentry (actor_name, action, object_type, object_id, changes)"
        """ VALUES ('x', 'payout_booked', 'accounts.account', '1',
                    '{"booking_reference": [null, "X"]}')"""
    ),
    "no order is debited or refunded twice": (
        "DROP INDEX wallets_entry_once_per_order; INSERT INTO wallets_ledgerentry (wallet_id, kind,"
        " counterpart, amount, balance_after, order_reference, actor, chain)"
        " SELECT wallet_id, kind, counterpart, amount, balance_after, order_reference, actor, chain"
        " FROM wallets_ledgerentry WHERE kind = 'refund'"
    ),
    "refunds and credits of an order are at most what its wallet paid for it": (
        CREDIT.format("amount + 0.0001 FROM topups_fulfilment WHERE status = 'processing'")
    ),
    "an order is in the currency of its wallet": "UPDATE orders_order SET currency = 'EUR'",
    "each debit, refund and credit has its order": (
        "UPDATE wallets_ledgerentry SET order_reference = 'X' WHERE kind = 'refund'"
    ),
    "a shelf counts the codes it holds": "UPDATE catalogue_shelf SET available_stock = 9",
    "each voucher order has exactly its codes, from its shelf": (
        "UPDATE catalogue_vouchercode SET order_id = NULL"
    ),
    "each sold code has its order": (
        "UPDATE catalogue_vouchercode SET order_id = 999999 WHERE order_id IS NULL"
    ),
    "each code is sealed with a key that is in use": (
        "UPDATE catalogue_vouchercode SET sealed = set_byte(sealed, 0, 77)"
    ),
    "no encryption key has sealed too many values": (
        "SELECT setval('orders_order_id_seq', 2147483648)"
    ),
    "a client's orders are numbered without gaps": "UPDATE orders_clientcounter SET orders = 99",
    "the totals of a day are the sums of its sales": (
        "INSERT INTO figures_dailytotal (day, currency, account_id, orders, quantity, amount)"
        " SELECT now(), currency, id, 1, 1, 1 FROM accounts_account LIMIT 1"
    ),
    "the margin sums of a day are those of its accounts": (
        "INSERT INTO figures_dailymarginsum (day, currency, account_id, quantity, sold, paid_back)"
        " SELECT now(), currency, id, 1, 1, 0 FROM accounts_account LIMIT 1"
    ),
    "the margin sums of a month are those of its accounts": (
        "INSERT INTO figures_monthlymarginsum"
        " (day, currency, account_id, quantity, sold, paid_back)"
        " SELECT now(), currency, id, 1, 1, 0 FROM accounts_account LIMIT 1"
    ),
    "the daily sales add up to the counted orders": (
        "INSERT INTO figures_dailysales (day, account_id, shelf_id, orders, quantity, amount)"
        " SELECT now(), account.id, shelf.id, 1, 1, 1"
        " FROM accounts_account AS account, catalogue_shelf AS shelf LIMIT 1"
    ),
    "no client has more counted orders than orders": (
        "INSERT INTO figures_countedsales SELECT client_id, orders + 1 FROM orders_clientcounter"
    ),
    "the margin figures add up to the counted orders, refunds and credits": (
        "INSERT INTO figures_dailymargin"
        " (day, account_id, shelf_id, quantity, sold, paid_back)"
        " SELECT now(), account.id, shelf.id, 1, 1, 0"
        " FROM accounts_account AS account, catalogue_shelf AS shelf LIMIT 1"
    ),
    "the margin figures of a month are those of its days": (
        "INSERT INTO figures_monthlymargin"
        " (day, account_id, shelf_id, quantity, sold, paid_back)"
        " SELECT now(), account.id, shelf.id, 1, 1, 0"
        " FROM accounts_account AS account, catalogue_shelf AS shelf LIMIT 1"
    ),
    "the daily spending of clients is what the margin figures say": (
        "INSERT INTO figures_dailyspending (day, client_id, amount)"
        " SELECT now(), client_id, 1 FROM orders_clientcounter"
    ),
    "no client has more orders in the margin figures than orders": (
        "INSERT INTO figures_countedmargin SELECT client_id, orders + 1 FROM orders_clientcounter"
    ),
    "the margin figures of a batch are its sold codes": (
        "INSERT INTO catalogue_batch (shelf_id, first_code, last_code, supplier, invoice,"
        " cost_currency, file_digest, imported_by)"
        " SELECT min(id), 900001, 900002, '', '', '', '', '' FROM catalogue_shelf;"
        " INSERT INTO figures_dailymargin"
        " (day, account_id, shelf_id, batch_id, quantity, sold, paid_back)"
        " SELECT now(), account.id, shelf_id, batch.id, 99, 1, 0"
        " FROM accounts_account AS account, catalogue_batch AS batch LIMIT 1"
    ),
    "a stamped record names an order of its client": (
        "UPDATE idempotency_idempotencyrecord SET order_reference = 'X', bought_at = now()"
    ),
    "a lost purchase is not an order": (
        "INSERT INTO orders_lostpurchase (reference, client_id, total_price, currency, sold_at)"
        " SELECT reference, client_id, total_price, currency, created_at FROM orders_order"
    ),
    "each batch has all of its codes, and shares none": (
        "INSERT INTO catalogue_batch (shelf_id, first_code, last_code, supplier, invoice,"
        " cost_currency, file_digest, imported_by)"
        " SELECT min(id), 900001, 900002, '', '', '', '', '' FROM catalogue_shelf"
    ),
    "each code has its digest in the table of digests, and no digest is left over": (
        "DELETE FROM catalogue_codedigest"
        " WHERE code_id = (SELECT max(id) FROM catalogue_vouchercode)"
    ),
    "no code was sold after it expired": (
        "UPDATE catalogue_vouchercode SET expires_on = '2020-01-01' WHERE order_id IS NOT NULL"
    ),
    "the debit of a lost purchase is its price, on the account that bought it": (
        "INSERT INTO orders_lostpurchase (reference, client_id, total_price, currency, sold_at)"
        " SELECT 'LOST', min(client_id), 1, 'USD', now() FROM orders_order;"
        "INSERT INTO orders_settlement (lost_purchase_id, debit_id, note, settled_by)"
        " SELECT max(lost.id), min(entry.id), '', ''"
        "   FROM orders_lostpurchase AS lost, wallets_ledgerentry AS entry"
    ),
    "each top-up order agrees with its fulfilment": "UPDATE topups_fulfilment SET amount = 1",
    "each fulfilment marked refunded was paid back in full, and each refund is marked": (
        "UPDATE topups_fulfilment SET refunded_at = NULL"
    ),
    "each failed fulfilment that was paid back in full is marked refunded": (
        CREDIT.format("amount FROM topups_fulfilment WHERE status = 'processing'")
        + "; UPDATE topups_fulfilment SET status = 'failed', claimed_by_id = NULL, claimed_at ="
        " NULL, closed_at = now(), failure_reason = 'fulfilment_failed'"
        " WHERE status = 'processing'"
    ),
    "each due refund has one rejection, and each refund one event, in the history": (
        "UPDATE topups_fulfilmentevent SET move = 'reject_unrefunded' WHERE move = 'reject'"
    ),
    "the history of a fulfilment leads to its status": (
        "UPDATE topups_fulfilmentevent SET to_status = 'failed' WHERE move = 'complete'"
    ),
    OWN_ID: (
        "INSERT INTO topups_topupfield (product_id, number, name, label, type, required, position)"
        " SELECT id, 1, 'server', 'Server', 'text', true, 0 FROM topups_topupproduct"
    ),
    "an ended announcement belongs to an ended order": (
        f"{ANNOUNCEMENT} 'ended', -1, id, now() FROM topups_fulfilment WHERE status = 'processing'"
    ),
    "each given-up announcement has an audit entry": (
        f"{ANNOUNCEMENT} 'given_up', NULL, NULL, NULL FROM topups_fulfilment"
    ),
    "the root secret of all sealed values is there, and no other one": (
        "UPDATE core_rootfingerprint SET fingerprint = 'another'"
    ),
    "what is sealed has a key that seals": "UPDATE core_encryptionkey SET sealing_since = NULL",
    "every trigger, constraint and index exists and is active": (
        "ALTER TABLE orders_order DISABLE TRIGGER orders_order_is_a_record"
    ),
}
# Further damage to top-ups, and the check that finds it.
REFUNDED = "each fulfilment marked refunded was paid back in full, and each refund is marked"
PAID_BACK = "refunds and credits of an order are at most what its wallet paid for it"
AGREES = "each top-up order agrees with its fulfilment"
LEADS = "the history of a fulfilment leads to its status"
DUE = "each due refund has one rejection, and each refund one event, in the history"
DUE_RULE = "topups_fulfilment_agrees_with_its_status"
MORE_DAMAGE = {
    "a top-up product with 31 fields": (
        OWN_ID,
        "INSERT INTO topups_topupfield (product_id, number, name, label, type, required, position)"
        " SELECT min(id), n, 'field' || n, 'Field', 'text', true, n"
        " FROM topups_topupproduct, generate_series(1000, 1030) AS n GROUP BY n;"
        " INSERT INTO topups_fieldid (product_id, number, name)"
        " SELECT product_id, number, name FROM topups_topupfield WHERE number >= 1000",
    ),
    "a fulfilment of another order": (
        AGREES,
        "UPDATE topups_fulfilment SET order_reference = 'X' || id",
    ),
    "a fulfilment of another account": (
        AGREES,
        "INSERT INTO accounts_account (id, name, currency, enabled)"
        " VALUES (99999, 'Other', 'USD', true); UPDATE topups_fulfilment SET account_id = 99999",
    ),
    "a fulfilment in another currency": (AGREES, "UPDATE topups_fulfilment SET currency = 'EUR'"),
    "a fulfilment without its order": (
        AGREES,
        "DELETE FROM orders_order WHERE fulfilment_id IS NOT NULL",
    ),
    "a refund of another amount": (
        REFUNDED,
        "UPDATE wallets_ledgerentry SET amount = amount + 1 WHERE kind = 'refund'",
    ),
    "a credit that nobody noted": (
        REFUNDED,
        "UPDATE topups_fulfilment SET refunded_at = NULL WHERE status = 'failed'",
    ),
    "a refund noted without a credit": (
        REFUNDED,
        "DELETE FROM wallets_ledgerentry WHERE kind = 'refund'",
    ),
    "a delivered order credited": (
        REFUNDED,
        "INSERT INTO wallets_ledgerentry (wallet_id, kind, counterpart, amount, balance_after,"
        " order_reference, actor, chain) SELECT account_id, 'refund', 'sales', amount, 0,"
        " order_reference, 'system', '' FROM topups_fulfilment WHERE status = 'completed'",
    ),
    "a refund of less than the price, with too little credited": (
        REFUNDED,
        "UPDATE wallets_ledgerentry SET amount = amount - 1 WHERE kind = 'refund'; "
        + CREDIT.format("0.99 FROM topups_fulfilment WHERE status = 'failed'"),
    ),
    "an order credited on another wallet": (
        PAID_BACK,
        "INSERT INTO accounts_account (id, name, currency, enabled)"
        " VALUES (99999, 'Other', 'USD', true);"
        + CREDIT.format("1 FROM topups_fulfilment WHERE status = 'completed'").replace(
            "account_id", "99999"
        ),
    ),
    "a refund and a credit that add up to more than the price": (
        PAID_BACK,
        CREDIT.format("0.01 FROM topups_fulfilment WHERE status = 'failed'"),
    ),
    "a refund that was never due": (
        REFUNDED,
        f"ALTER TABLE topups_fulfilment DROP CONSTRAINT {DUE_RULE};"
        " UPDATE topups_fulfilment SET refund_due_at = NULL",
    ),
    "a refund that history does not know": (
        DUE,
        "DELETE FROM topups_fulfilmentevent WHERE move = 'refund'",
    ),
    "a refund made due by nobody": (
        DUE,
        "UPDATE topups_fulfilmentevent SET move = 'complete' WHERE move = 'reject'",
    ),
    "a state that no move led to": (
        LEADS,
        "UPDATE topups_fulfilment SET status = 'pending', claimed_by_id = NULL"
        " WHERE status = 'processing'",
    ),
    "a step missing in the middle": (
        LEADS,
        "DELETE FROM topups_fulfilmentevent WHERE move = 'open'",
    ),
}


# A superuser, such as these tests, has every right: tests/roles/test_rights.py has that damage.
def damages() -> dict[str, str]:
    """The damage that each check of this run finds."""
    names = [check.name for check in reconcile_run.CHECKS if check is not RIGHTS_HELD]
    return {name: DAMAGE[name] for name in names}


@contextmanager
def only(name: str) -> Iterator[None]:
    """Has `reconcile` run this check alone."""
    with pytest.MonkeyPatch.context() as patch:
        chosen = [check for check in reconcile_run.CHECKS if check.name == name]
        patch.setattr(reconcile_run, "CHECKS", chosen)
        patch.setattr(reconcile_run, "WARNINGS", [])
        yield


def names_of_findings(**options: Any) -> set[str]:
    """The checks that find something."""
    return {finding["check"] for finding in reconcile(**options)["findings"]}


def test_a_healthy_service_has_no_findings(busy: Merchant) -> None:
    result = reconcile(decrypt=True)

    assert result["findings"] == []
    assert result["ok"] is True
    assert (result["checked"]["orders"], result["checked"]["fulfilments"]) == (5, 3)


def test_each_damage_is_found_by_its_check(busy: Merchant, subtests: pytest.Subtests) -> None:
    for name, damage in damages().items():
        with subtests.test(name), damaged(damage), only(name):
            assert name in names_of_findings()


def test_all_damage_at_once_is_found_by_all_checks(busy: Merchant) -> None:
    """Some damage hides other damage, or prevents it. The next round has what is left."""
    left = damages()
    while left:
        with damaged():
            for damage in left.values():
                with suppress(IntegrityError), transaction.atomic():
                    without_triggers(damage)
            found = names_of_findings()
        assert found & left.keys(), left.keys()
        left = {name: left[name] for name in left if name not in found}


def test_each_figure_of_the_daily_sales_is_checked(
    busy: Merchant, subtests: pytest.Subtests
) -> None:
    count_sales()
    assert reconcile()["findings"] == []

    for figure in ("orders", "quantity", "amount"):
        damage = f"UPDATE figures_dailysales SET {figure} = {figure} + 1"
        with subtests.test(figure), damaged(damage):
            assert "the daily sales add up to the counted orders" in names_of_findings()


def test_each_figure_of_the_margins_is_checked_by_day(
    busy: Merchant, subtests: pytest.Subtests
) -> None:
    count_margins()
    today, tomorrow = Period(midnight()), Period(midnight() + timedelta(days=1))
    name = "the margin figures add up to the counted orders, refunds and credits"
    assert reconcile(periods=[today])["findings"] == []

    for figure in ("quantity", "sold", "paid_back"):
        damage = f"UPDATE figures_dailymargin SET {figure} = {figure} + 1"
        with subtests.test(figure), damaged(damage):
            assert name in names_of_findings(periods=[today])
            assert name not in names_of_findings(periods=[tomorrow])


def test_a_period_of_a_day_checks_the_margins_of_its_month(
    busy: Merchant, subtests: pytest.Subtests
) -> None:
    count_margins()
    today = midnight()
    tomorrow = today + timedelta(days=1)
    names = (
        "the margin figures of a month are those of its days",
        "the margin sums of a month are those of its accounts",
    )
    next_month = Period((today.replace(day=1) + timedelta(days=31)).replace(day=1))
    with damaged("UPDATE figures_monthlymargin SET quantity = quantity + 1"):
        for name in names:
            for period in (Period(today), Period(today, tomorrow)):
                with subtests.test(name, until=period.until):
                    assert name in names_of_findings(periods=[period], weekly=False)
            assert name not in names_of_findings(periods=[next_month], weekly=False)


WEEKLY = {check.name for check in CHECKS if check.weekly}


@pytest.fixture
def last_night() -> None:
    """A run of yesterday that found nothing. Everything else is younger."""
    ReconcileRun.objects.create(
        state=RunState.CLEAN,
        started_at=timezone.now() - timedelta(days=1),
        finished_at=timezone.now(),
        history_until=timezone.now() - timedelta(days=9),
    )


def test_new_damage_is_found_by_the_next_run(
    busy: Merchant,
    last_night: None,
    monkeypatch: pytest.MonkeyPatch,
    subtests: pytest.Subtests,
) -> None:
    # The ledger began long ago, so tonight is not the night of the checks of whole tables.
    begin = timezone.now() - timedelta(days=70)
    monkeypatch.setattr(nightly_reconcile, "_first_entry", lambda: begin)
    for name, damage in damages().items():
        with subtests.test(name):
            plan = plan_run(timezone.now())
            with damaged(damage), only(name):
                found = names_of_findings(periods=plan.periods, weekly=plan.weekly)

            assert not plan.weekly
            assert [len(plan.periods), plan.periods[0].until] == [2, None]
            assert (name in found) == (name not in WEEKLY)


def test_new_damage_to_topups_is_found_by_the_next_run(
    busy: Merchant, subtests: pytest.Subtests
) -> None:
    for damage, (name, statement) in MORE_DAMAGE.items():
        with subtests.test(damage), damaged(statement), only(name):
            assert name in names_of_findings(periods=[Period(midnight())], weekly=False)


def test_old_damage_is_found_by_the_run_of_its_slice(
    busy: Merchant, subtests: pytest.Subtests
) -> None:
    """To the run, all rows are old: the last run is said to be of tomorrow."""
    for name, damage in damages().items():
        slice = Period(midnight() - timedelta(days=1), midnight() + timedelta(days=1))
        later = Period(midnight() + timedelta(days=2))
        with subtests.test(name), damaged(damage), only(name):
            assert name in names_of_findings(periods=[later, slice])


def test_healthy_rows_of_a_period_have_no_findings(busy: Merchant) -> None:
    today, day = midnight(), timedelta(days=1)
    seen = []
    for period in (Period(today), Period(today, today + day), Period(today + 2 * day)):
        result = reconcile(periods=[period], weekly=False)
        assert result["findings"] == []
        assert "codes" not in result["checked"]
        seen.append(result["checked"]["orders"])
    assert seen == [5, 5, 0]


def test_control_a_run_of_other_rows_does_not_find_old_damage(busy: Merchant) -> None:
    without_triggers(DAMAGE["each order has its one debit"])
    later = Period(midnight() + timedelta(days=2))

    assert reconcile(periods=[later])["ok"]
    assert not reconcile()["ok"]


def midnight() -> datetime:
    """The beginning of this day, in UTC."""
    return timezone.now().replace(hour=0, minute=0, second=0, microsecond=0)


def test_no_check_reads_a_table_once_for_each_row(
    busy: Merchant, subtests: pytest.Subtests
) -> None:
    """PostgreSQL plans each check for tables of ROWS rows. It believes what pg_class says of the
    rows of a page."""
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(
            "UPDATE pg_class SET reltuples = %s, relpages = 1"
            " WHERE relkind = 'r' AND relnamespace = 'public'::regnamespace"
            "   AND relname <> 'core_encryptionkey'",  # has a row for each key
            [ROWS],
        )
        for check in (*CHECKS, *WARNINGS):
            with subtests.test(check.name), transaction.atomic():
                cursor.execute(
                    f"EXPLAIN (FORMAT JSON) {check.sql}",
                    check.parameters() if check.parameters else None,
                )
                ((plan,),) = cursor.fetchone()
                assert plan["Plan"]["Total Cost"] < ROWS**1.5
        transaction.set_rollback(True)


def test_of_many_findings_the_first_are_fetched_and_the_others_counted() -> None:
    check = Check("all is well", "SELECT 'fault ' || n FROM generate_series(1, 100000) AS n")
    with connection.cursor() as cursor:
        findings = [one["finding"] for one in run_check(cursor, check)]
        assert cursor.rowcount == 100

    assert findings == [*(f"fault {n}" for n in range(1, 101)), "and 99900 more"]


def test_every_trigger_is_watched(busy: Merchant) -> None:
    with connection.cursor() as cursor:
        cursor.execute("SELECT tgname FROM pg_trigger WHERE NOT tgisinternal")
        assert sorted(name for (name,) in cursor) == TRIGGERS


def test_guards_of_another_version_are_not_compared(busy: Merchant) -> None:
    """After going back: the newer version may have replaced a trigger."""
    trigger = "ALTER TABLE wallets_ledgerentry {} TRIGGER wallets_post_entry"
    later = ("wallets", "9999_later")
    without_triggers(trigger.format("DISABLE"))
    try:
        assert not reconcile()["ok"]
        MigrationRecorder(connection).record_applied(*later)
        found = reconcile()
    finally:
        MigrationRecorder(connection).record_unapplied(*later)
        without_triggers(trigger.format("ENABLE"))

    assert found["ok"]
    assert [warning["finding"] for warning in found["warnings"]] == [
        "a newer version has migrated the database, such as wallets.9999_later: run its reconcile"
        " to check triggers, constraints and rights"
    ]


def test_a_missing_constraint_is_found(busy: Merchant, subtests: pytest.Subtests) -> None:
    for table, name, finding in (
        (
            "wallets_wallet",
            "wallets_wallet_balance_not_negative",
            "constraint wallets_wallet_balance_not_negative is missing",
        ),
        (
            "catalogue_vouchercode",
            "catalogue_vouchercode_order_fk",
            "constraint catalogue_vouchercode_order_fk is missing",
        ),
        (
            "catalogue_codedigest",
            "catalogue_codedigest_pkey",
            "catalogue_codedigest.digest has no unique index",
        ),
    ):
        with subtests.test(name), damaged(f"ALTER TABLE {table} DROP CONSTRAINT {name}"):
            assert reconcile()["findings"] == [{"check": GUARDS.name, "finding": finding}]


def test_further_damage_to_topups_is_found(busy: Merchant, subtests: pytest.Subtests) -> None:
    for damage, (name, statement) in MORE_DAMAGE.items():
        with subtests.test(damage), damaged(statement), only(name):
            assert name in names_of_findings()


def late_work() -> list[str]:
    """The warnings of a run without findings, except that this test is not the service."""
    result = reconcile()
    assert result["ok"]
    warnings = [one for one in result["warnings"] if one["check"] != RIGHTS_EXCEEDED.name]
    return [one["finding"] for one in warnings]


def test_an_overdue_refund_is_only_a_warning(busy: Merchant, settings: Settings) -> None:
    reference = buy_topup(busy)
    move_now(reference=reference, move=Move.REJECT, operator=make_operator())
    assert late_work() == []

    settings.REFUND_OVERDUE_MINUTES = 7
    make_due(minutes_ago=6)
    assert late_work() == []

    make_due(minutes_ago=8)
    (warning,) = late_work()
    assert reference in warning

    sweep_refunds()
    assert late_work() == []


def make_due(*, minutes_ago: int) -> None:
    without_triggers(
        f"UPDATE topups_fulfilment SET refund_due_at = now() - interval '{minutes_ago} minutes'"
        " WHERE refunded_at IS NULL AND refund_due_at IS NOT NULL"
    )


def test_a_code_that_cannot_be_opened_is_named_by_its_id(busy: Merchant) -> None:
    without_triggers("UPDATE catalogue_vouchercode SET sealed = sealed || '\\x00'::bytea")

    assert reconcile()["ok"] is True
    findings = reconcile(decrypt=True)["findings"]
    assert len(findings) == 5
    assert "catalogue_vouchercode" in findings[0]["finding"]


def test_the_command_exits_1_on_any_finding(busy: Merchant) -> None:
    def run() -> dict[str, Any]:
        call_command("reconcile", stdout=out, stderr=io.StringIO())
        answer: dict[str, Any] = json.loads(out.getvalue())
        return answer

    out = io.StringIO()
    assert run()["ok"] is True

    without_triggers("UPDATE catalogue_shelf SET available_stock = 9")
    out = io.StringIO()
    with pytest.raises(SystemExit) as exit_:
        run()
    assert exit_.value.code == 1
    assert json.loads(out.getvalue())["findings"]
