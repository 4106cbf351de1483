"""Each check of the long run finds what it is for. The data is small; the damage is planted."""

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest

from labs.soak.logs import LogReader
from labs.soak.merchants import inconsistency
from labs.soak.verdict import Told, judge
from labs.soak.watch import Happened, Watch, figures
from tests.concurrency.racing import execute
from tests.factories import (
    Merchant,
    buy_topup,
    make_merchant,
    make_operator,
    make_product,
    make_topup_product,
    move_now,
)
from topups.fulfilment.refunds import sweep_refunds
from topups.fulfilment.transitions import Move

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("alone")]


@dataclass
class Books:
    """Two voucher orders, two ended top-ups and a refusal, and what was told of them."""

    folder: Path
    merchant: Merchant
    lines: list[list[str]] = field(default_factory=list)
    told: Told = field(init=False)

    def line(self, kind: str, key: str, answer: dict[str, object] | None, outcome: str) -> None:
        data: dict[str, object] = answer or {}
        codes = ",".join(code["code"] for code in data.get("codes", ()))  # type: ignore[attr-defined]
        words = [kind, self.merchant.client.pk, key, outcome, data.get("reference", "")]
        words += [data.get("quantity", 1), data.get("total_price", ""), codes, time.time()]
        self.lines.append(list(map(str, words)))

    def problems(self) -> set[str]:
        text = "".join("\t".join(line) + "\n" for line in self.lines)
        (self.folder / "given.tsv").write_text(text)
        return set(judge(self.told))


@pytest.fixture
def books(tmp_path: Path) -> Iterator[Books]:
    books = Books(tmp_path, make_merchant())
    merchant, product = books.merchant, make_product(price="1.00", codes=9)
    for key in ("one", "two"):
        answer = merchant.buy(key, product_id=product.pk, quantity=2)
        books.line("voucher", key, answer.json()["data"], "bought")
    refused = merchant.buy("three", product_id=product.pk, quantity=99)
    assert refused.status_code == 409
    books.line("refused", "three", None, "refused")
    topup, operator = make_topup_product(), make_operator()
    ended = {}
    for move in (Move.COMPLETE, Move.REJECT):
        reference = buy_topup(merchant, topup)
        order = merchant.get(f"/orders/{reference}").json()["data"]
        books.line("top_up", f"key of {move}", order, "bought")
        move_now(reference=reference, move=move, operator=operator)
        ended[reference] = move
    sweep_refunds()
    (tmp_path / "wrong.txt").touch()
    logged = {line[4] for line in books.lines if line[4]}
    books.told = Told(folder=tmp_path, ended=ended, logged=logged, full_disk=[])
    yield books
    execute("ALTER TABLE orders_order ENABLE TRIGGER orders_order_is_a_record")


def untriggered(statement: str) -> None:
    """Runs a statement that the database would refuse."""
    execute("SET session_replication_role = replica")
    execute(statement)
    execute("SET session_replication_role = origin")


def change(line: int, word: int, text: str) -> Callable[[Books], None]:
    """Replaces a word of what was told of a purchase."""

    def plant(books: Books) -> None:
        books.lines[line][word] = text

    return plant


def copy_line(line: int, key: str) -> Callable[[Books], None]:
    """Tells of a purchase once more, with this key."""
    return lambda books: books.lines.append([*books.lines[line][:2], key, *books.lines[line][3:]])


def swap_codes(books: Books) -> None:
    books.lines[0][7], books.lines[1][7] = books.lines[1][7], books.lines[0][7]


def keep_a_code_back(books: Books) -> None:
    books.lines[0][7] = books.lines[0][7].partition(",")[0]


def give_a_code_twice(books: Books) -> None:
    books.lines[1][7] = books.lines[0][7]


def lose_a_log_line(books: Books) -> None:
    books.told.logged.remove(books.lines[0][4])


SECOND_END = """
    INSERT INTO topups_fulfilmentevent
           (fulfilment_id, move, from_status, to_status, actor, channel, note, created_at)
    SELECT fulfilment_id, 'reject', 'pending', 'failed', actor, channel, note, created_at
      FROM topups_fulfilmentevent WHERE move = 'complete'"""
REFUND_OF_A_DELIVERED_TOPUP = """
    INSERT INTO wallets_ledgerentry
           (wallet_id, kind, counterpart, amount, balance_after, actor, chain, order_reference)
    SELECT account_id, 'refund', 'sales', amount, 0, 'x', '', order_reference
      FROM topups_fulfilment WHERE status = 'completed'"""
# The damage, as SQL or as a function, and the beginning of its problem.
DAMAGE: list[tuple[str | Callable[[Books], object], str]] = [
    (
        "DELETE FROM orders_order WHERE id = (SELECT min(id) FROM orders_order)",
        "lost: an order that",
    ),
    (change(0, 6, "1.99"), "lost: an order has another"),
    (swap_codes, "lost: a code that"),
    (keep_a_code_back, "lost: an order has more"),
    ("DELETE FROM topups_fulfilmentevent WHERE move = 'complete'", "lost: a move"),
    (lambda books: books.told.logged.add("01" * 13), "lost: the log"),
    (give_a_code_twice, "doubled: a code"),
    (copy_line(0, "another key"), "doubled: two keys"),
    (copy_line(2, "one"), "doubled: a key"),
    (SECOND_END, "doubled: a top-up"),
    (REFUND_OF_A_DELIVERED_TOPUP, "doubled: a rejected"),
    ("DELETE FROM wallets_ledgerentry WHERE kind = 'refund'", "doubled: a rejected"),
    (lambda books: books.lines.pop(0), "unreported: no merchant"),
    (change(2, 3, "unknown"), "unreported: a merchant"),
    (change(0, 3, "refused"), "unreported: a key"),
    (lose_a_log_line, "unlogged"),
    ("UPDATE wallets_wallet SET balance = balance + 1", "books: a balance is not the sum"),
    ("ALTER TABLE orders_order DISABLE TRIGGER orders_order_is_a_record", "reconcile"),
    ("UPDATE catalogue_vouchercode SET sealed = set_byte(sealed, 20, 7)", "reconcile"),
    (lambda books: (books.folder / "wrong.txt").write_text("voucher key: 502\n"), "an answer that"),
]


def test_nothing_is_found_where_all_is_well(books: Books) -> None:
    assert books.problems() == set()


@pytest.mark.parametrize(("damage", "problem"), DAMAGE)
def test_each_damage_is_found(
    books: Books, damage: str | Callable[[Books], object], problem: str
) -> None:
    if isinstance(damage, str):
        untriggered(damage)
    else:
        damage(books)
    found = books.problems()
    assert any(each.startswith(problem) for each in found), found


def test_a_line_may_be_lost_on_a_full_disk(books: Books) -> None:
    lose_a_log_line(books)
    books.told = replace(books.told, full_disk=[(time.time() - 60, time.time() + 60)])
    assert books.problems() == set()


def test_a_secret_in_a_log_is_found(tmp_path: Path) -> None:
    reader = LogReader([tmp_path], {"a code": "CANARY12", "a key": "0abc"})
    log = tmp_path / "web.log"
    log.write_text('{"event":"fine","level":"info"}\n{"event":"CANA')
    reader.read()
    assert not reader.leaks
    with log.open("a") as file:  # a line that arrives in two parts
        file.write('RY12","level":"error"}\n')
    reader.read()
    assert reader.leaks == {"a code in web.log"}
    assert reader.errors == {"CANARY12": 1}


PENDING = {
    **{"status": "pending", "fulfilment_status": "processing", "failure_reason": None},
    **{"refunded": False, "codes": [], "total_price": 4.99},
}
ENDED = {**PENDING, "status": "failed", "fulfilment_status": "failed"}
FAILED = {**ENDED, "failure_reason": "no_stock"}
DELIVERED = {**PENDING, "status": "completed", "fulfilment_status": "completed"}
REFUNDED = {**FAILED, "refunded": True}


@pytest.mark.parametrize(
    ("before", "order", "problem"),
    [
        *((PENDING, order, "") for order in (PENDING, FAILED, REFUNDED, DELIVERED)),
        (FAILED, REFUNDED, ""),
        (PENDING, {**PENDING, "status": "completed"}, "status does not follow fulfilment_status"),
        (PENDING, ENDED, "failure_reason without a failure, or"),
        (PENDING, {**DELIVERED, "refunded": True}, "refunded but not failed"),
        (PENDING, {**PENDING, "total_price": 5}, "wrong codes or price"),
        (PENDING, {**PENDING, "codes": [{}]}, "wrong codes or price"),
        (DELIVERED, PENDING, "an ended order changed"),
        (FAILED, {**FAILED, "failure_reason": "wrong_id"}, "an ended order changed"),
        (REFUNDED, FAILED, "a refund was undone"),
    ],
)
def test_an_order_that_contradicts_itself_or_an_earlier_response_is_found(
    before: dict[str, object], order: dict[str, object], problem: str
) -> None:
    found = inconsistency(order, before)
    assert found.startswith(problem)
    assert bool(found) is bool(problem)


def grown(*, p50: float, memory: float) -> tuple[Watch, list[float], list[float]]:
    """A run of 120 seconds whose latency and memory grow evenly to these multiples."""
    watch, took = Watch(), []
    for second in range(120):
        share = second / 120
        took.append(8 * (1 + share * (p50 - 1)))
        size = {"witness web": 100 * (1 + share * (memory - 1))}
        spent = {"web": 0.02 * second}
        watch.samples.append(
            {"time": second, "memory": size, "spent": spent, "bought": 20 * second}
        )
    return watch, list(range(120)), took


@pytest.mark.parametrize(("p50", "memory"), [(1, 1), (3, 1), (1, 1.5)])
def test_growth_is_found(p50: float, memory: float) -> None:
    flat = figures(*grown(p50=p50, memory=memory), [Happened("kill the bot", 30, 32)])["flat"]
    assert flat["p50"]["flat"] is (p50 == 1)
    assert flat["memory of witness web"]["flat"] is (memory == 1)
    assert flat["processor ms per purchase"]["ratio"] == 1.0


def test_seconds_with_a_fault_are_not_judged() -> None:
    watch, times, took = grown(p50=1, memory=1)
    took[50:55] = [5000.0] * 5
    slow = figures(watch, times, took, [Happened("kill the bot", 0, 1)])["thirds"]
    judged = figures(watch, times, took, [Happened("kill PostgreSQL", 49, 55)])["thirds"]
    assert max(each["p99"] for each in slow) > 1000
    assert max(each["p99"] for each in judged) < 10
