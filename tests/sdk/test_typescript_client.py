"""The TypeScript library decides as the Python library does, and buys from the real service."""

import json
import random
import sqlite3
import subprocess
import time
from contextlib import closing
from datetime import timedelta
from pathlib import Path
from typing import Any

import psycopg
import pytest
from django.utils import timezone
from voucher_topup import core
from voucher_topup.pace import Pace
from voucher_topup.wire import ErrorCode, Failure, Foreign, Refusal, Reply, Success

from idempotency.models import IdempotencyRecord
from merchants.money.statement import write_csv
from tests.factories import (
    Merchant,
    buy_topup,
    make_merchant,
    make_operator,
    make_product,
    make_topup_product,
    move_now,
)
from tests.live import LiveServer, owner_url
from tests.merchants.bad_network import FOREIGN, bad_network, running
from tests.neighbour import ours
from tests.sdk import typescript
from tests.sdk.servers import SlowNetwork, untrusted_server
from tests.sdk.test_reconciling import ANY_COMPARISON, ANY_WRONG_PERIOD, Comparison
from topups.fulfilment.transitions import Move
from wallets.models import EntryKind, LedgerEntry

pytestmark = [pytest.mark.npm, pytest.mark.django_db(transaction=True)]

HERE = Path(__file__).parent
RULES = {"firstPause": 0.01, "longestPause": 0.05, "crowdPause": 0.1, "progressPause": 0.05}


@pytest.fixture(scope="module", autouse=True)
def _built() -> None:
    typescript.build()


def node(program: str, given: Any) -> Any:
    done = subprocess.run(
        [typescript.oldest_node(), HERE / program],
        input=json.dumps(given),
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def run(base_url: str, merchant: Merchant, *steps: list[Any], **rules: float) -> list[Any]:
    return run_with([], base_url, merchant, *steps, own_fetch=False, **rules)


def run_with(
    entries: list[dict[str, Any]],
    base_url: str,
    merchant: Merchant,
    *steps: list[Any],
    own_fetch: bool = False,
    **rules: float,
) -> list[Any]:
    """`entries` are in the journal from the start."""
    given = {
        "baseUrl": base_url,
        "apiKey": merchant.key,
        "rules": {**RULES, **rules},
        "ownFetch": own_fetch,
    }
    results: list[Any] = node("buy.mjs", {**given, "steps": steps, "entries": entries})
    assert merchant.key not in json.dumps(results)
    return results


def debits() -> list[str | None]:
    purchases = ours(LedgerEntry).filter(kind=EntryKind.PURCHASE).order_by("pk")
    return list(purchases.values_list("order_reference", flat=True))


@pytest.mark.parametrize(
    "plan", [(), ("lose",), ("half", "gateway", "lose"), ("limit", "lose"), tuple(FOREIGN)]
)
def test_it_buys_once_when_messages_are_lost(live: LiveServer, plan: tuple[str, ...]) -> None:
    merchant, product = make_merchant(), make_product(price="9.99", codes=5)
    purchase = {"product_id": product.pk, "quantity": 2}

    with bad_network(live.port, *plan) as network:
        bought, again = run(
            network.base_url, merchant, ["buy", "1", purchase], ["buy", "1", purchase]
        )

    assert bought["result"]["kind"] == "bought"
    assert debits() == [bought["result"]["order"]["reference"]]
    assert bought["result"]["order"]["total_price"] == "19.98"
    assert len(bought["codes"]) == 2
    assert again["codes"] == bought["codes"]
    for code in bought["codes"]:
        assert code not in bought["printed"] + json.dumps(bought["result"])


def test_outcomes_that_are_not_a_purchase(live: LiveServer) -> None:
    merchant, product = make_merchant(balance="5.00"), make_product(price="9.99", codes=5)
    purchase = {"product_id": product.pk, "quantity": 1}

    with bad_network(live.port) as network:
        refused, taken, missing = run(
            network.base_url,
            merchant,
            ["buy", "1", purchase],
            ["buy", "1", {**purchase, "quantity": 2}],
            ["complete", "2"],
        )
    assert refused["result"]["kind"] == "refused"
    assert refused["result"]["error"]["reason"] == "insufficient_balance"
    assert refused["advice"]["charged"] == "no"
    assert taken["result"]["thrown"] == "OrderNumberTaken"
    assert missing["result"]["thrown"] == "NotInJournal"


def test_an_unknown_outcome_is_settled_by_resume(live: LiveServer) -> None:
    merchant, product = make_merchant(), make_product(codes=5)
    purchase = {"product_id": product.pk, "quantity": 1}

    with bad_network(live.port, "lose", "disable", "lose") as network:
        unknown, is_open, resumed, left = run(
            network.base_url, merchant, ["buy", "1", purchase], ["open"], ["resume"], ["open"]
        )

    assert unknown["result"]["kind"] == "unknown"
    assert unknown["result"]["error"]["code"] == "client_disabled"
    assert is_open["result"] == ["1"]
    assert [outcome["kind"] for outcome in resumed["result"]] == ["bought"]
    assert left["result"] == []
    assert len(debits()) == 1


def test_a_double_click_buys_once(live: LiveServer) -> None:
    merchant, product = make_merchant(), make_product(codes=5)
    (clicks,) = run(
        f"{live.base_url}/api/v1",
        merchant,
        ["twice", "1", {"product_id": product.pk, "quantity": 1}],
    )
    assert len({outcome["order"]["reference"] for outcome in clicks["result"]}) == 1
    assert len(debits()) == 1


def test_reading_watching_and_reconciling(live: LiveServer) -> None:
    merchant = make_merchant(balance="12.30")
    kept, gone = make_product(name="Card", codes=1, price="0.10"), make_product(name="Old")
    gone.active = False
    gone.save()
    topup_product, operator = make_topup_product(price="1.10"), make_operator()
    first, second = (buy_topup(merchant, topup_product) for _ in range(2))
    for reference in (first, second):
        move_now(reference=reference, move=Move.CLAIM, operator=operator)
        move_now(reference=reference, move=Move.COMPLETE, operator=operator)
    statement = b"".join(write_csv(ours(LedgerEntry).order_by("pk"), account=merchant.account))

    balance, copy, topups, since, watched, unknown, books = run(
        f"{live.base_url}/api/v1",
        merchant,
        ["balance"],
        ["sync", [kept.pk, gone.pk]],
        ["syncTopups"],
        ["since", first],
        ["watch", [first, second]],
        ["since", "unknown"],
        ["reconcile", statement.decode()],
    )

    assert balance["result"]["balance"] == "10.10"
    assert kept.pk in {product["id"] for product in copy["result"]["products"]}
    assert copy["result"]["gone"] == [gone.pk]
    assert topup_product.pk in {product["id"] for product in topups["result"]["products"]}
    assert [order["reference"] for order in since["result"]] == [second]
    assert sorted(watched["result"]) == sorted([first, second])
    assert unknown["result"]["thrown"] == "ReferenceNotFound"
    assert sorted(books["result"]["debitsUnknownHere"]) == sorted([first, second])


def compare(*entries: dict[str, Any], statement: str, period: dict[str, str]) -> Any:
    """What the library says about a journal with these entries."""
    given = {"baseUrl": "http://127.0.0.1/api/v1", "apiKey": "vk_x", "entries": entries}
    (compared,) = node("buy.mjs", {**given, "steps": [["reconcile", statement, period]]})
    return compared["result"]


@ANY_COMPARISON
def test_a_purchase_of_the_period_needs_a_debit(comparison: Comparison) -> None:
    entries = [
        {
            "orderNumber": f"number of {name}",
            "key": f"key of {name}",
            "body": "{}",
            "openedAt": opened_at,
            "sentAt": sent_at,
            "state": "bought",
            "reference": name,
            "total": "1.00",
        }
        for name, opened_at, sent_at in comparison.purchases
    ]

    result = compare(*entries, statement=comparison.statement, period=comparison.period)

    assert result["purchasesWithoutDebit"] == comparison.without_debit
    assert result["purchasesAtTheEdge"] == comparison.at_the_edge
    assert result["debitsUnknownHere"] == []
    assert result["isClean"] == (not comparison.without_debit)


@ANY_WRONG_PERIOD
def test_an_unfinished_or_wrong_period_is_an_error(period: dict[str, str]) -> None:
    result = compare(statement='{"entries": []}', period=period)
    assert result["thrown"] == "RangeError"


def as_event(reply: Reply) -> dict[str, Any]:
    if isinstance(reply, Success):
        return {"kind": "success", "status": reply.status, "data": dict(reply.data)}
    if isinstance(reply, Refusal):
        return {"kind": "refusal", "status": reply.status, "error": reply.error.as_json()}
    return {"kind": "foreign", "status": reply.status}


KINDS = {
    core.Send: "send",
    core.Read: "read",
    core.SettleBought: "bought",
    core.SettleRefused: "refused",
    core.LeaveOpen: "open",
}


def decide_all(events: list[Reply], *, doubt: bool, chance: float) -> list[list[Any]]:
    state = core.State(
        started=0, key_ends=core.RULES.key_lifetime, doubt=doubt, late_until=40.0 if doubt else 0.0
    )
    now = 0.0
    actions: list[list[Any]] = []
    everything: list[core.Event] = [core.Begin(), *events]
    for event in everything:
        state, action = core.decide(state, event, now=now, chance=chance)
        after = getattr(action, "after", None)
        reference = getattr(action, "reference", None)
        actions.append([KINDS[type(action)], after, reference, state.doubt])
        if after is None:
            break
        now += after
    return actions


def test_both_cores_decide_the_same() -> None:
    """On 3,000 random orders of events."""
    chance = random.Random(7)
    replies: list[Reply] = [
        *(Foreign(status) for status in (0, 200, 302, 403, 408, 429, 500, 502)),
        *(
            Refusal(status, Failure(code, "", reference=reference, retry_after_seconds=seconds))
            for code in [*ErrorCode, ErrorCode("a_new_code")]
            for status in (400, 408, 409, 429, 500)
            for reference in (None, "R-1")
            for seconds in (None, 3)
        ),
        *(Success(status, {"reference": "R-1"}) for status in (200, 201)),
        Success(201, {}),
    ]
    # An outcome that settles would end most lists at once, so some replies are more frequent.
    slow = replies[:12]
    cases: list[dict[str, Any]] = [
        {
            "doubt": chance.random() < 0.5,
            "chance": chance.random(),
            "events": [chance.choice(pool) for pool in chance.choices([slow, replies], k=20)],
        }
        for _ in range(3000)
    ]

    theirs = node(
        "core.mjs",
        [{**case, "events": [as_event(each) for each in case["events"]]} for case in cases],
    )

    for case, actions in zip(cases, theirs, strict=True):
        expected = decide_all(case["events"], doubt=case["doubt"], chance=case["chance"])
        assert [[kind, pytest.approx(after), *rest] for kind, after, *rest in expected] == actions


def test_both_paces_wait_the_same() -> None:
    """On 300 random orders of requests."""
    chance = random.Random(7)
    cases: list[dict[str, Any]] = []
    for _ in range(300):
        now, asks = 0.0, []
        for _ in range(40):
            now += chance.choice((0.0, 1.0, 7.5))
            is_purchase = chance.random() < 0.5
            block = now + 3 if chance.random() < 0.05 else None
            asks.append(
                {
                    # A purchase that waited may ask again.
                    "token": chance.randrange(4) if is_purchase else 9,
                    "isPurchase": is_purchase,
                    "now": now,
                    "block": block,
                }
            )
        cases.append({"limit": chance.choice((None, 1, 3, 10)), "asks": asks})

    for case, waits in zip(cases, node("pace.mjs", cases), strict=True):
        assert waits == waits_of_python(case["asks"], limit=case["limit"])


def waits_of_python(asks: list[dict[str, Any]], *, limit: int | None) -> list[float]:
    pace = Pace()
    pace.limit = limit
    waits = []
    for ask in asks:
        if ask["block"] is not None:
            pace.block(ask["block"])
        waits.append(pace.ask(ask["token"], is_purchase=ask["isPurchase"], now=ask["now"]))
    return waits


def test_the_shop_writes_a_purchase_in_its_own_transaction(live: LiveServer) -> None:
    merchant, product = make_merchant(), make_product(codes=5)
    given = {
        "baseUrl": f"{live.base_url}/api/v1",
        "apiKey": merchant.key,
        "database": owner_url(),
        "purchase": {"product_id": product.pk, "quantity": 1},
    }
    try:
        before, bought, *rolled_back = node("prepare.mjs", given)
    finally:
        with psycopg.connect(owner_url()) as shop:
            shop.execute("DROP TABLE voucher_purchases")

    assert before == "NotInJournal"
    assert debits() == [bought]
    assert rolled_back == ["NotInJournal", "NotInJournal"]


def test_a_second_program_waits_while_the_first_creates_the_journal(tmp_path: Path) -> None:
    path = tmp_path / "purchases.db"
    library = typescript.LIBRARY / "dist" / "esm" / "index.js"
    program = (
        f"const {{ SqliteJournal }} = await import('{library}');"
        "const { DatabaseSync } = await import('node:sqlite');"
        f"const database = new DatabaseSync('{path}');"
        "console.log('opens');"
        "await SqliteJournal.open(database);"
    )
    with closing(sqlite3.connect(path, isolation_level=None)) as first:
        first.execute("BEGIN EXCLUSIVE")
        second = subprocess.Popen(
            [typescript.newest_node(), "--input-type=module", "--eval", program],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        assert second.stdout is not None
        assert second.stdout.readline() == "opens\n"
        with pytest.raises(subprocess.TimeoutExpired):
            second.communicate(timeout=1)
        first.execute("COMMIT")
    _, errors = second.communicate(timeout=30)
    assert second.returncode == 0, errors


def test_the_package_loads_as_a_module_and_as_commonjs(tmp_path: Path) -> None:
    """As npm packs it."""
    packed = subprocess.run(
        ["npm", "pack", "--silent", "--ignore-scripts", "--pack-destination", tmp_path],
        cwd=typescript.LIBRARY,
        check=True,
        capture_output=True,
        text=True,
    ).stdout.split()[-1]
    package = tmp_path / "node_modules" / "voucher-topup"
    package.mkdir(parents=True)
    subprocess.run(
        ["tar", "-xzf", tmp_path / packed, "--strip-components=1", "-C", package], check=True
    )
    assert not (package / "src").exists()
    for program in (
        "import { Client } from 'voucher-topup'; console.log(typeof Client)",
        "const { Client } = require('voucher-topup'); console.log(typeof Client)",
    ):
        kind = "module" if program.startswith("import") else "commonjs"
        done = subprocess.run(
            [typescript.oldest_node(), f"--input-type={kind}", "--eval", program],
            cwd=tmp_path,
            check=True,
            capture_output=True,
            text=True,
        )
        assert done.stdout == "function\n"


def start_a_client(before: str, api_key: str) -> str:
    """What Node writes to standard error when it makes a client."""
    built = typescript.LIBRARY / "dist" / "esm" / "index.js"
    options = f"{{ baseUrl: 'https://a.example/api/v1', apiKey: {json.dumps(api_key)}, journal }}"
    program = (
        f"{before};"
        f"const {{ Client, MemoryJournal }} = await import('{built}');"
        "const journal = new MemoryJournal();"
        f"try {{ new Client({options}) }} catch (problem) {{ console.error(problem.message) }}"
    )
    done = subprocess.run(
        [typescript.oldest_node(), "--input-type=module", "--eval", program],
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stderr


def test_it_refuses_to_run_in_a_browser() -> None:
    assert "must never reach a browser" in start_a_client("globalThis.document = {}", "x")


@pytest.mark.parametrize("wrong", ["", "vk_secret\n", "vk_ secret", "vk_sécret"])
def test_a_key_that_no_header_can_carry_is_refused(wrong: str) -> None:
    """Otherwise each request would fail as if nothing had answered."""
    said = start_a_client("", wrong)
    assert "apiKey must be the key only" in said
    assert "secret" not in said


@pytest.mark.parametrize(
    ("base_url", "cause"),
    [
        ("https://no-such-host.invalid/api/v1", "ENOTFOUND"),
        ("https://127.0.0.1:{port}/api/v1", "SSL"),  # the port speaks plain HTTP
    ],
)
def test_an_unreachable_service_is_named_at_once(
    live: LiveServer, base_url: str, cause: str
) -> None:
    purchase = {"product_id": 1, "quantity": 1}
    merchant = make_merchant()
    started = time.monotonic()
    (unknown,) = run(base_url.format(port=live.port), merchant, ["buy", "1", purchase])

    assert unknown["result"]["kind"] == "unknown"
    assert cause in unknown["result"]["last"]["cause"]
    assert time.monotonic() - started < 10


def test_a_wrong_certificate_is_named_at_once(tmp_path: Path) -> None:
    purchase = {"product_id": 1, "quantity": 1}
    with untrusted_server(tmp_path) as server:
        base_url = f"https://127.0.0.1:{server.server_port}/api/v1"
        (unknown,) = run(base_url, make_merchant(), ["buy", "1", purchase])

    assert unknown["result"]["kind"] == "unknown"
    assert "DEPTH_ZERO_SELF_SIGNED_CERT" in unknown["result"]["last"]["cause"]
    assert (server.connections, server.requests) == (1, 0)


@pytest.mark.parametrize(("options", "at_once"), [({}, 4), ({"atOnce": 2}, 2)])
def test_resume_settles_some_purchases_at_once_and_no_more(
    live: LiveServer, options: dict[str, int], at_once: int
) -> None:
    merchant, product = make_merchant(), make_product(codes=6)
    body = json.dumps({"product_id": product.pk, "quantity": 1})
    entries = [
        {
            "orderNumber": str(number),
            "key": f"key-{number}",
            "body": body,
            "openedAt": time.time(),
            "state": "open",
        }
        for number in range(6)
    ]
    with running(SlowNetwork(live.port, [])) as network:
        (resumed,) = run_with(entries, network.base_url, merchant, ["resume", options])

    outcomes = [(each["orderNumber"], each["kind"]) for each in resumed["result"]]
    assert outcomes == [(str(number), "bought") for number in range(6)]
    assert len(debits()) == 6
    assert network.most_at_once == at_once


@pytest.mark.parametrize("own_fetch", [False, True])
def test_requests_name_the_library_and_its_version_with_any_fetch(
    live: LiveServer, own_fetch: bool
) -> None:
    version = json.loads((typescript.LIBRARY / "package.json").read_text())["version"]
    merchant, product = make_merchant(), make_product(codes=1)
    purchase = {"product_id": product.pk, "quantity": 1}
    with running(SlowNetwork(live.port, [])) as network:
        _, bought, fetched = run_with(
            [],
            network.base_url,
            merchant,
            ["balance"],
            ["buy", "1", purchase],
            ["fetched"],
            own_fetch=own_fetch,
        )

    assert bought["result"]["kind"] == "bought"
    assert network.user_agents == {f"voucher-topup-typescript/{version}"}
    assert fetched["result"] == (["/api/v1/balance", "/api/v1/orders"] if own_fetch else [])


def test_a_wrong_base_url_is_refused() -> None:
    (result,) = run("https://shop.example", make_merchant(), ["ping"])
    assert "must end with /api/v1" in result["result"]["thrown"]


def test_outcomes_errors_and_logs_name_the_last_reply(live: LiveServer) -> None:
    merchant = make_merchant()
    purchase = {"product_id": make_product(codes=1).pk, "quantity": 1}
    with bad_network(live.port, "lose", "disable") as network:
        unknown, log = run(network.base_url, merchant, ["buy", "1", purchase], ["log"])
    merchant.key = "vk_wrong"
    failed, parted = run(f"{live.base_url}/api/v1", merchant, ["balance"], ["order", ".."])

    assert unknown["result"]["last"] == {"status": 403, "cause": "client_disabled"}
    assert log["result"][-1]["level"] == "warning"
    assert log["result"][-1]["last"] == unknown["result"]["last"]
    assert failed["result"]["thrown"] == "ApiError"
    assert failed["result"]["last"]["requestId"]
    assert parted["result"]["thrown"] == "RangeError"


def test_a_call_ends_after_its_time_or_when_it_is_aborted(live: LiveServer) -> None:
    merchant = make_merchant()
    purchase = {"product_id": make_product(codes=1).pk, "quantity": 1}
    patient = {"firstPause": 5.0, "longestPause": 5.0}
    with bad_network(live.port, *["gateway"] * 100) as network:
        started = time.monotonic()
        timed, aborted = run(
            network.base_url,
            merchant,
            ["buy", "1", purchase, {"timeout": 0.3}],
            ["aborted", "2", purchase],
            **patient,
        )
    assert timed["result"]["kind"] == aborted["result"]["kind"] == "unknown"
    assert timed["result"]["last"]["status"] == 502
    assert time.monotonic() - started < 5


def test_the_key_may_be_the_order_number_and_fields_may_change_places(live: LiveServer) -> None:
    merchant, product = make_merchant(), make_product(codes=1)
    first, same, wrong = run(
        f"{live.base_url}/api/v1",
        merchant,
        ["buy", "order-1", {"product_id": product.pk, "quantity": 1}, {"key": "order-1"}],
        ["buy", "order-1", {"quantity": 1, "product_id": product.pk}],
        ["buy", "ä", {"product_id": product.pk, "quantity": 1}, {"key": "ä"}],
    )
    assert ours(IdempotencyRecord).get().key == "order-1"
    assert same["result"] == first["result"]
    assert wrong["result"]["thrown"] == "RangeError"


def test_a_final_refusal_closes_a_purchase_whose_first_request_was_lost(live: LiveServer) -> None:
    merchant, product = make_merchant(), make_product(codes=1)
    sent_at = time.time() - 91
    entry = {
        "orderNumber": "1",
        "key": "key-1",
        "body": json.dumps({"product_id": product.pk, "quantity": 1000}),
        "openedAt": sent_at,
        "sentAt": sent_at,
        "state": "open",
    }
    (resumed,) = run_with([entry], f"{live.base_url}/api/v1", merchant, ["resume"])
    assert [outcome["kind"] for outcome in resumed["result"]] == ["refused"]


@pytest.mark.parametrize("is_debited", [True, False])
def test_an_old_purchase_is_closed_by_the_statement(live: LiveServer, is_debited: bool) -> None:
    merchant, product = make_merchant(), make_product(codes=1, price="1.10")
    if is_debited:
        merchant.buy("key-1", product_id=product.pk, quantity=1)
    now = timezone.now()
    noon = (now - timedelta(days=2)).replace(hour=12, minute=0)
    day, earlier = str(noon.date()), str((now - timedelta(days=4)).date())
    entry = {
        "orderNumber": "1",
        "key": "key-1",
        "body": json.dumps({"product_id": product.pk, "quantity": 1}),
        "openedAt": noon.timestamp(),
        "state": "open",
    }
    entries = ours(LedgerEntry).order_by("pk")
    statement = b"".join(write_csv(entries, account=merchant.account)).decode()
    days = {"since": day, "until": day}
    before = {"since": earlier, "until": earlier}
    resumed, elsewhere, early, reconciled, closed = run_with(
        [entry],
        f"{live.base_url}/api/v1",
        merchant,
        ["resume"],
        ["reconcile", statement, before],
        ["closePurchase", "1", statement, before],
        ["reconcile", statement, days],
        ["closePurchase", "1", statement, days],
    )

    assert "older than 23 hours" in resumed["result"][0]["last"]["cause"]
    assert elsewhere["result"]["openPurchases"] == []
    assert early["result"]["thrown"] == "RangeError"
    assert reconciled["result"]["openPurchases"] == ["1"]
    if is_debited:
        assert closed["result"]["order"]["reference"] == debits()[0]
    else:
        assert closed["result"]["error"]["code"] == "not_debited"


def test_watching_survives_an_outage_and_an_unknown_reference(live: LiveServer) -> None:
    merchant, product = make_merchant(), make_topup_product(price="1.00")
    reference, operator = buy_topup(merchant, product), make_operator()
    move_now(reference=reference, move=Move.CLAIM, operator=operator)
    move_now(reference=reference, move=Move.COMPLETE, operator=operator)
    with bad_network(live.port, *["gateway"] * 20) as network:
        (watched,) = run(
            network.base_url,
            merchant,
            ["watch", [reference, "unknown"], {"every": 0.05}],
            patience=0.2,
        )
    assert watched["result"] == [reference, "ReferenceNotFound"]
