"""The purchase log names every purchase, and nothing secret; `hold_codes` reads it back."""

import base64
import gzip
import io
import json
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from django.core.management import call_command
from django.db.models import F
from django.test import Client
from django.utils import timezone
from pytest_django import Settings

from catalogue.imports.code_import import add_codes
from catalogue.models import VoucherCode
from catalogue.stock.codes import Code, code_digester
from core.database import sealing
from core.database.sealing import Context
from idempotency.cleanup import cleanup_records
from idempotency.models import IdempotencyRecord
from orders.models import LostPurchase
from orders.recovery import logged_purchases, purchase_log
from orders.recovery.logged_purchases import LoggedPurchase, read_purchases
from orders.recovery.lost_purchases import hold_lost_purchases
from orders.recovery.purchase_log import LINES_LOST, log_life
from tests.commands import refusal, run
from tests.factories import (
    Merchant,
    buy_topup,
    make_merchant,
    make_product,
    make_topup_product,
    own_shelf,
)

pytestmark = pytest.mark.django_db

EARLY = datetime(2020, 1, 1, tzinfo=UTC)


@pytest.fixture
def log(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> Any:
    """Returns a file with what was logged since the last call, as of a process that stopped."""
    purchase_log._log.cache_clear()
    purchase_log._this_process.cache_clear()

    def written(*, stops: bool = True) -> Path:
        if stops:
            log_life(stops=True)
        file = tmp_path / "web.log"
        file.write_text(capsys.readouterr().err)
        purchase_log._this_process.cache_clear()
        return file

    yield written
    purchase_log._log.cache_clear()


@pytest.fixture
def merchant() -> Merchant:
    return make_merchant(balance="100.00")


def lines(file: Path) -> list[dict[str, Any]]:
    events = [json.loads(line) for line in file.read_text().splitlines()]
    return [event for event in events if event["event"] == "order_created"]


def purchase_log_of(file: Path) -> list[str]:
    """The lines of the purchases, then the one with which the process stopped."""
    return [line for line in file.read_text().splitlines() if '"event":"order' in line]


def lost(file: Path) -> list[LoggedPurchase]:
    """The purchases of a log, under other references: as if the database did not have them."""
    return [under_another_reference(each) for each in read_purchases([file], since=EARLY)]


def under_another_reference(purchase: LoggedPurchase) -> LoggedPurchase:
    reference = f"LOST{purchase.reference[4:]}"
    key, fingerprint = purchase.request()
    request = json.dumps([key, fingerprint.hex()]).encode()
    sealed = sealing.seal(request, Context.LOGGED_REQUEST, reference.encode())
    return LoggedPurchase(**{**vars(purchase), "reference": reference, "sealed_request": sealed})


def test_a_purchase_leaves_one_line_that_opens_nothing(log: Any, merchant: Merchant) -> None:
    product = make_product(price="2.00", codes=2)
    order = merchant.buy("my-key", product_id=product.pk, quantity=2).json()["data"]
    file = log()
    (line,) = lines(file)
    codes = VoucherCode.objects.filter(shelf__product=product).order_by("position")
    assert line["reference"] == order["reference"]
    assert "my-key" not in file.read_text()
    (read,) = read_purchases([file], since=EARLY)
    assert read.request()[0] == "my-key"
    assert line["price"] == "4.0000"
    beginnings = [base64.b64encode(bytes(code.digest)[:16]).decode() for code in codes]
    assert line["codes"] == beginnings
    assert line["request_id"]
    for code in order["codes"]:
        assert code["code"] not in file.read_text()
    assert merchant.key not in file.read_text()


@pytest.mark.django_db(transaction=True)
def test_a_replay_and_a_refusal_leave_no_line(log: Any, merchant: Merchant) -> None:
    product = make_product(price="2.00", codes=1)
    merchant.buy("my-key", product_id=product.pk, quantity=1)
    log()
    assert merchant.buy("my-key", product_id=product.pk, quantity=1).status_code == 201
    assert merchant.buy("other", product_id=product.pk, quantity=1).status_code == 409
    assert lines(log()) == []


@pytest.mark.parametrize("kind", ["voucher", "top_up"])
@pytest.mark.django_db(transaction=True)
def test_an_abandoned_order_gets_its_line_when_the_merchant_hears_of_it(
    log: Any, merchant: Merchant, kind: str
) -> None:
    """The process that bought it may have ended before it wrote one."""
    body: dict[str, Any] = {"product_id": make_product(price="2.00", codes=2).pk, "quantity": 2}
    if kind == "top_up":
        topup = make_topup_product().pk
        body = {"delivery_type": kind, "system_product_id": topup, "player_id": "7"}
    assert merchant.buy("my-key", **body).status_code == 201
    (written,) = lines(log())
    IdempotencyRecord.objects.filter(key="my-key").update(response=None, started_at=EARLY)

    assert merchant.buy("my-key", **body).json()["error"]["code"] == "request_abandoned"
    file = log()
    (again,) = lines(file)
    assert unsealed(again) == unsealed(written)
    (read,) = read_purchases([file], since=EARLY)
    assert read.request()[0] == "my-key"


def unsealed(line: dict[str, Any]) -> dict[str, Any]:
    """The line without what differs each time that it is written."""
    return {
        name: line[name]
        for name in ("reference", "client_id", "price", "currency", "sold_at", "codes")
    }


def test_a_topup_leaves_a_line_without_codes(log: Any, merchant: Merchant) -> None:
    reference = buy_topup(merchant)
    (line,) = lines(log())
    assert (line["reference"], line["codes"], line["price"]) == (reference, [], "4.9900")


def test_a_log_that_cannot_be_written_fails_no_purchase(
    merchant: Merchant, monkeypatch: pytest.MonkeyPatch
) -> None:
    product = make_product(price="2.00", codes=1)
    with Path("/dev/full").open("w") as full:
        monkeypatch.setattr("sys.stderr", full)
        purchase_log._log.cache_clear()
        assert merchant.buy(product_id=product.pk, quantity=1).status_code == 201
        purchase_log._log.cache_clear()
        with suppress(OSError):
            full.close()


def test_a_line_that_cannot_be_written_is_counted(
    merchant: Merchant, monkeypatch: pytest.MonkeyPatch
) -> None:
    (before,) = LINES_LOST.copy()[()]
    with Path("/dev/full").open("w") as full:
        monkeypatch.setattr("sys.stderr", full)
        purchase_log._log.cache_clear()
        buy_topup(merchant)
        purchase_log._log.cache_clear()
        with suppress(OSError):
            full.close()
    assert LINES_LOST.copy()[()] == [before + 1]


def test_a_folder_has_the_lines_of_each_day(
    log: Any, merchant: Merchant, settings: Settings, tmp_path: Path
) -> None:
    settings.PURCHASE_LOG_DIR = folder = tmp_path / "a" / "b"
    for _ in range(2):
        buy_topup(merchant)

    on_stderr = purchase_log_of(log())
    (file,) = folder.iterdir()
    assert file.read_text().splitlines() == on_stderr
    assert file.name == f"purchases-{datetime.now(UTC):%Y-%m-%d}.log"
    assert (folder.stat().st_mode & 0o777, file.stat().st_mode & 0o777) == (0o700, 0o600)


def test_one_log_that_cannot_be_written_leaves_the_other(
    log: Any,
    merchant: Merchant,
    settings: Settings,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    (lost,) = LINES_LOST.copy()[()]
    settings.PURCHASE_LOG_DIR = tmp_path / "web.log"  # a file
    settings.PURCHASE_LOG_DIR.touch()
    buy_topup(merchant)
    assert len(lines(log())) == 1
    assert LINES_LOST.copy()[()] == [lost + 1]

    settings.PURCHASE_LOG_DIR = tmp_path / "folder"
    with Path("/dev/full").open("w") as full:
        monkeypatch.setattr("sys.stderr", full)
        purchase_log._log.cache_clear()
        buy_topup(merchant)
        with suppress(OSError):
            full.close()
    (file,) = settings.PURCHASE_LOG_DIR.iterdir()
    assert len(lines(file)) == 1
    assert LINES_LOST.copy()[()] == [lost + 2]


@pytest.mark.parametrize(
    ("kept", "missing"),
    [
        ([0, 1, 2, 3, 4], None),
        ([0, 2, 3, 4], "lines 2 to 2 of"),
        ([0, 4], "lines 2 to 4 of"),
        ([4, 0, 1, 3, 2], None),
        ([2, 3, 4], "lines 1 to 2 of"),
        ([4], "lines 1 to 4 of"),
        ([0, 1, 2], "lines 4 to 5 of"),
        ([], "lines 1 to 5 of"),
    ],
)
def test_missing_lines_are_named(
    log: Any, merchant: Merchant, kept: list[int], missing: str | None, tmp_path: Path
) -> None:
    for _ in range(5):
        buy_topup(merchant)
    *whole, end = purchase_log_of(log())
    file = tmp_path / "part.log"
    file.write_text("\n".join([*(whole[number] for number in kept), end]))
    arguments = ("hold_codes", "--log", file, "--since", "2020-01-01T00:00Z")

    if missing is None:
        assert run(*arguments)["purchases"] == []
        return
    process = json.loads(whole[0])["process"]
    refused = refusal(*arguments)
    assert f"{file}: {missing} process {process} are missing" in refused
    assert "hold_codes --all" in refused
    assert run(*arguments, "--skip-missing")["purchases"] == []


def test_a_log_may_begin_with_a_line_before_the_time(
    log: Any, merchant: Merchant, tmp_path: Path
) -> None:
    """Of what is older, nothing is needed. Without such a line, a purchase may be missing."""
    for _ in range(4):
        buy_topup(merchant)
    whole = purchase_log_of(log())
    file = tmp_path / "rotated.log"
    third = json.loads(whole[2])["sold_at"]

    file.write_text("\n".join(whole[1:]))
    assert run("hold_codes", "--log", file, "--since", third)["purchases"] == []
    file.write_text("\n".join(whole[2:]))
    assert "lines 1 to 2 of" in refusal("hold_codes", "--log", file, "--since", third)


def test_a_log_without_its_end_is_refused(log: Any, merchant: Merchant, tmp_path: Path) -> None:
    buy_topup(merchant)
    file = log(stops=False)
    command = ("hold_codes", "--log", file, "--since", "2020-01-01T00:00Z")
    process = lines(file)[0]["process"]
    assert f"{file}: the lines of process {process} end at 20" in refusal(*command)
    assert run(*command, "--skip-missing")["purchases"] == []


def test_the_end_of_a_process_that_was_killed_is_taken(
    log: Any, merchant: Merchant, tmp_path: Path
) -> None:
    """Only its end: the lines of other processes, and those in front of its last, are needed."""
    buy_topup(merchant)
    file = log(stops=False)
    killed = lines(file)[0]["process"]
    command = ("hold_codes", "--log", file, "--since", "2020-01-01T00:00Z")
    assert f"killed then and its host went on, add --killed {killed}." in refusal(*command)
    assert run(*command, "--killed", killed)["purchases"] == []
    assert "it did not stop then" in refusal(*command, "--killed", "00000000")
    both = ("--killed", killed, "--killed", "00000000")
    assert "no line is of process 00000000" in refusal(*command, *both)

    for _ in range(2):
        buy_topup(merchant)
    gap = tmp_path / "gap.log"
    gap.write_text(purchase_log_of(log(stops=False))[1])
    name = lines(gap)[0]["process"]
    command = ("hold_codes", "--log", gap, "--since", "2020-01-01T00:00Z")
    assert f"lines 1 to 1 of process {name}" in refusal(*command, "--killed", name)


def test_a_process_that_was_killed_long_ago_is_no_lost_end(
    log: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A line of another process shows that the log goes on. Without one, it is cut off there."""
    monkeypatch.setattr(logged_purchases, "LIFE_SECONDS", 0)
    log_life()
    file = log(stops=False)
    since = datetime.now(UTC)
    command = ("hold_codes", "--log", file, "--since", since.isoformat())
    assert "it did not stop then" in refusal(*command)
    killed = file.read_text()
    file.write_text(killed + log().read_text())
    assert run(*command)["purchases"] == []


def test_the_log_of_a_process_that_sells_nothing_is_taken(log: Any) -> None:
    log_life()
    assert list(read_purchases([log()], since=EARLY)) == []


def test_each_process_numbers_its_own_lines(log: Any, merchant: Merchant, tmp_path: Path) -> None:
    texts = []
    for _ in range(2):
        buy_topup(merchant)
        texts.append(log().read_text())
    file = tmp_path / "all.log"
    file.write_text("".join(texts))

    first, second = read_purchases([file], since=EARLY)

    assert (first.number, second.number) == (1, 1)
    assert first.process != second.process
    assert purchase_log._this_process(1).name != purchase_log._this_process(2).name  # of a fork


def test_what_the_database_has_is_left_alone(log: Any, merchant: Merchant) -> None:
    product = make_product(price="2.00", codes=2)
    merchant.buy(product_id=product.pk, quantity=1)
    answer = run("hold_codes", "--log", log(), "--since", "2020-01-01T00:00Z")
    assert (answer["hold"], answer["codes_held"], answer["purchases"]) == (None, 0, [])
    assert not LostPurchase.objects.exists()


def test_a_log_that_was_forgotten_as_a_whole_is_noticed_by_its_orders(
    log: Any, merchant: Merchant, tmp_path: Path
) -> None:
    """The lines of the other hosts have no gap. An order before the time needs no line."""

    def warning(*files: Path) -> str:
        out, warned = io.StringIO(), io.StringIO()
        words = ("hold_codes", "--log", *map(str, files), "--since", since)
        call_command(*words, stdout=out, stderr=warned)
        assert json.loads(out.getvalue())["purchases"] == []
        return warned.getvalue()

    buy_topup(merchant)
    log()
    since = datetime.now(UTC).isoformat()
    hosts = []
    for name, orders in (("web1", 1), ("web2", 2)):
        for _ in range(orders):
            buy_topup(merchant)
        hosts.append(log().rename(tmp_path / name))
    assert warning(*hosts) == ""
    assert "2 orders since --since are in none of these logs." in warning(hosts[0])


def test_a_folder_is_read_as_all_its_logs(log: Any, merchant: Merchant, tmp_path: Path) -> None:
    """Each host has a folder in the folder of the copies, which is empty if there is one host."""
    since, folder, empty = datetime.now(UTC).isoformat(), tmp_path / "hosts", tmp_path / "empty"
    empty.mkdir()
    for name in ("web1/purchases.log", "web2/purchases.log.gz"):
        (folder / name).parent.mkdir(parents=True)
        buy_topup(merchant)
        text = log().read_bytes()
        (folder / name).write_bytes(gzip.compress(text) if name.endswith("gz") else text)
    warned = io.StringIO()

    words = ("hold_codes", "--log", str(folder), str(empty), "--since", since)
    call_command(*words, stdout=io.StringIO(), stderr=warned)

    # No order is missing in the logs.
    assert warned.getvalue() == f"Warning: there is no *.log in {empty}.\n"
    (folder / "web2/purchases.log.gz").unlink()
    call_command(*words, stdout=io.StringIO(), stderr=warned)
    assert "1 orders since --since are in none of these logs." in warned.getvalue()


def test_folders_without_any_log_are_refused(tmp_path: Path, monkeypatch: Any) -> None:
    """Nothing would be held. A folder that is called like a log is no file."""
    (tmp_path / "web1.log").mkdir()
    monkeypatch.setattr("sys.stdin", io.StringIO("a terminal"))
    refused = refusal("hold_codes", "--log", tmp_path, "--since", "2020-01-01T00:00Z")
    assert "There is no log in these folders" in refused


def test_a_key_that_was_claimed_but_did_not_buy_is_blocked(log: Any, merchant: Merchant) -> None:
    """The restore may keep the claim of a lost purchase, because the claim came first."""
    product = make_product(price="2.00", codes=2)
    merchant.buy("my-key", product_id=product.pk, quantity=1)
    purchases = lost(log())
    IdempotencyRecord.objects.filter(key="my-key").update(
        order_reference=None, bought_at=None, response=None
    )
    found = hold_lost_purchases(purchases, reason="test", held_by="x")
    assert [each["reference"] for each in found["purchases"]] == [purchases[0].reference]
    retried = merchant.buy("my-key", product_id=product.pk, quantity=1)
    assert retried.json()["error"]["code"] == "request_abandoned"
    assert retried.json()["error"]["reference"] == purchases[0].reference


def test_a_sale_of_a_lost_client_holds_its_codes(log: Any, merchant: Merchant) -> None:
    product = make_product(price="2.00", codes=2)
    merchant.buy(product_id=product.pk, quantity=1)
    purchases = [
        LoggedPurchase(**{**vars(purchase), "client_id": 987_654_321}) for purchase in lost(log())
    ]
    answer = hold_lost_purchases(purchases, reason="test", held_by="x")
    assert [each["account_id"] for each in answer["purchases"]] == [None]


def test_only_sales_since_the_given_time_are_read(log: Any, merchant: Merchant) -> None:
    product = make_product(price="2.00", codes=2)
    merchant.buy(product_id=product.pk, quantity=1)
    file = log()
    assert len(list(read_purchases([file], since=EARLY))) == 1
    assert list(read_purchases([file], since=datetime(2100, 1, 1, tzinfo=UTC))) == []


@pytest.mark.parametrize(
    "around",
    [
        lambda line: f"Nov 22 host web[7]: {line}",
        lambda line: json.dumps({"log": f"{line}\n", "stream": "stderr"}),
        lambda line: json.dumps({"MESSAGE": line, "_PID": "7"}),
    ],
    ids=["text in front", "docker", "journal"],
)
def test_what_a_collector_puts_around_a_line_is_removed(
    log: Any, merchant: Merchant, tmp_path: Path, around: Callable[[str], str]
) -> None:
    reference = buy_topup(merchant)
    file = tmp_path / "collected.log"
    file.write_text("".join(f"{around(line)}\n" for line in log().read_text().splitlines()))
    (read,) = read_purchases([file], since=EARLY)
    assert read.reference == reference


def test_a_compressed_file_and_standard_input_are_read(
    log: Any, merchant: Merchant, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    buy_topup(merchant)
    text = log().read_text()
    file = tmp_path / "web.log.1.gz"
    file.write_bytes(gzip.compress(text.encode()))
    monkeypatch.setattr("sys.stdin", io.StringIO(text))
    assert len(list(read_purchases([file, Path("-")], since=EARLY))) == 2


def test_a_purchase_in_two_files_is_lost_once(
    log: Any, merchant: Merchant, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("orders.recovery.lost_purchases.BATCH", 1)
    product = make_product(price="2.00", codes=2)
    merchant.buy(product_id=product.pk, quantity=1)
    purchases = lost(log())
    answer = hold_lost_purchases(purchases * 2, reason="test", held_by="x")
    assert len(answer["purchases"]) == 1


def test_a_code_that_was_sold_again_is_reported(log: Any, merchant: Merchant) -> None:
    product = make_product(price="2.00", codes=2)
    order = merchant.buy(product_id=product.pk, quantity=1).json()["data"]
    answer = hold_lost_purchases(lost(log()), reason="test", held_by="x")
    assert answer["sold_again_with"] == [order["reference"]]


def test_a_second_run_holds_codes_that_came_into_stock_after_the_first(
    log: Any, merchant: Merchant
) -> None:
    """An import that the restore lost is repeated between the runs."""
    product = make_product(price="2.00", codes=1)
    merchant.buy(product_id=product.pk, quantity=1)
    (bought,) = lost(log())
    purchase = replace(bought, codes=(code_digester()("LATE")[:16],))
    first = hold_lost_purchases([purchase], reason="test", held_by="x")
    assert (first["codes_held"], len(first["purchases"])) == (0, 1)

    add_codes(shelf=own_shelf(product), rows=[(1, Code("LATE"))])

    second = hold_lost_purchases([purchase], reason="test", held_by="x")
    assert (second["codes_held"], second["purchases"]) == (1, [])


def test_codes_of_lost_purchases_leave_the_hold_of_the_whole_stock(
    log: Any, merchant: Merchant
) -> None:
    """That hold is released later, and its codes are sold."""
    product = make_product(price="2.00", codes=3)
    merchant.buy(product_id=product.pk, quantity=1)
    (bought,) = lost(log())
    code = VoucherCode.objects.filter(shelf=own_shelf(product), order_id=None).earliest("position")
    purchase = replace(bought, reference="lost", codes=(bytes(code.digest)[:16],))
    everything = run("hold_codes", "--all")

    found = hold_lost_purchases([purchase], reason="test", held_by="x")
    again = hold_lost_purchases([purchase], reason="test", held_by="x")
    released = run("release_codes", everything["hold"])

    assert (found["codes_held"], again["hold"]) == (1, None)
    assert released["released"] == everything["codes_held"] - 1
    code.refresh_from_db()
    assert code.hold_id == found["hold"]
    assert product.shelves.get().available_stock == 1


def test_codes_are_held_although_the_key_of_the_line_is_gone(log: Any, merchant: Merchant) -> None:
    product = make_product(price="2.00", codes=2)
    merchant.buy(product_id=product.pk, quantity=1)
    (purchase,) = lost(log())
    sealed = bytes([99]) + purchase.sealed_request[1:]
    unknown = LoggedPurchase(**{**vars(purchase), "sealed_request": sealed})
    answer = hold_lost_purchases([unknown], reason="test", held_by="x")
    assert (answer["keys_not_blocked"], len(answer["purchases"])) == (1, 1)


def test_a_blocked_key_is_kept_as_long_as_a_success(log: Any, merchant: Merchant) -> None:
    product = make_product(price="2.00", codes=2)
    merchant.buy("my-key", product_id=product.pk, quantity=1)
    purchases = lost(log())
    records = IdempotencyRecord.objects.filter(key="my-key")
    days_ago = timezone.now() - timedelta(days=3)
    records.update(
        order_reference=None, bought_at=None, response=None, created_at=days_ago, fingerprint=b"x"
    )
    hold_lost_purchases(purchases, reason="test", held_by="x")
    records.update(
        created_at=F("created_at") - timedelta(days=6, hours=23),
        bought_at=F("bought_at") - timedelta(days=6, hours=23),
    )
    cleanup_records()
    retried = merchant.buy("my-key", product_id=product.pk, quantity=1)
    assert retried.json()["error"]["code"] == "request_abandoned"
    assert "lost when the database was restored" in retried.json()["error"]["message"]


def test_the_line_of_the_largest_order_fits_into_one_write(log: Any) -> None:
    """Processes that share a pipe mix what is longer than 4,096 bytes."""
    merchant = make_merchant(balance="1000.00")
    product = make_product(price="1.00", codes=100)
    merchant.buy("k" * 128, product_id=product.pk, quantity=100)
    (line,) = (line for line in log().read_text().splitlines() if "order_created" in line)
    assert len(line.encode()) < 4096 - 1


@pytest.mark.parametrize(
    "line",
    [
        '{"event": "order_created"}',
        '{"event": "order_created", "reference": ',
        '{"event": "order_created", "reference": "x", "client_id": 1, "codes": ["é"]}',
    ],
)
def test_a_damaged_line_is_refused_with_its_place(line: str, tmp_path: Path) -> None:
    file = tmp_path / "web.log"
    file.write_text(f"other\n{line}\n")
    refused = refusal("hold_codes", "--log", file, "--since", "2020-01-01T00:00Z")
    assert f"{file}:2" in refused
    again = refusal("hold_codes", "--log", file, "--since", "2020-01-01T00:00Z", "--skip-damaged")
    assert f"{file} has no line of a web process" in again


@pytest.mark.parametrize("collector", [str, lambda line: f"Nov 22 10:00:00 host web: {line}"])
@pytest.mark.parametrize("cut", [1, 30, 200, -1])
def test_a_purchase_after_a_line_cut_off_by_a_full_disk_is_read(
    log: Any, merchant: Merchant, cut: int, collector: Callable[[str], str], tmp_path: Path
) -> None:
    first, second = (buy_topup(merchant) for _ in range(2))
    whole = [line for line in log().read_text().splitlines() if "order_created" in line]
    file = tmp_path / "full.log"
    file.write_text(collector(f"{whole[0][:cut]}{whole[1]}\n"))
    read = read_purchases([file], since=EARLY, skip_damaged=True, skip_missing=True)
    assert [each.reference for each in read] == [second]
    refused = refusal("hold_codes", "--log", file, "--since", "2020-01-01T00:00Z")
    assert f"{file}:1: this line is damaged" in refused
    assert first != second


FORGED = {
    "reference": "01ARZ3NDEKTSV4RRFFQ69G5FAV",
    "client_id": 1,
    "request": "",
    "price": "9999",
    "currency": "USD",
    "sold_at": "2099-01-01T00:00:00+00:00",
    "codes": [""],
    "mac": "",
}


@pytest.mark.parametrize("collector", [str, lambda line: json.dumps({"log": f"{line}\n"})])
@pytest.mark.parametrize(
    "path",
    [
        json.dumps({"event": "order_created", **FORGED}),
        json.dumps({"log": json.dumps({"event": "order_created", **FORGED})}),
        "{order_created",
        '{"order_created":' + "[" * 2000,
    ],
    ids=["purchase", "inside another", "no JSON", "deep"],
)
@pytest.mark.django_db(transaction=True)
def test_nobody_writes_a_line_by_asking_for_a_path(
    log: Any, merchant: Merchant, path: str, collector: Callable[[str], str], tmp_path: Path
) -> None:
    """The request log quotes the path."""
    product = make_product(price="2.00", codes=2)
    merchant.buy(product_id=product.pk, quantity=1)
    assert Client().get(f"/api/v1/{quote(path)}").status_code == 404
    text = log().read_text()
    file = tmp_path / "collected.log"
    file.write_text("".join(f"{collector(line)}\n" for line in text.splitlines()))
    assert any("request_finished" in line and "404" in line for line in text.splitlines())

    answer = run("hold_codes", "--log", file, "--since", "2020-01-01T00:00Z")
    assert (answer["codes_held"], answer["purchases"]) == (0, [])


@pytest.mark.parametrize("collector", [str, lambda line: json.dumps({"log": line})])
def test_a_long_line_that_was_cut_is_no_damaged_purchase(
    log: Any, merchant: Merchant, collector: Callable[[str], str], tmp_path: Path
) -> None:
    """Container runtimes cut lines at 16 kB. Earlier versions logged paths of any length."""
    bought = buy_topup(merchant)
    asked = "x" * 500 + json.dumps({"event": "order_created", **FORGED}) + "x" * 500
    long = json.dumps({"event": "request_finished", "request": f"GET /{asked}", "code": 404})
    pieces = [long[:900], long[900:], long[:300], long[300:], *purchase_log_of(log())]
    file = tmp_path / "cut.log"
    file.write_text("".join(f"{collector(piece)}\n" for piece in pieces))

    read = read_purchases([file], since=EARLY)

    assert [each.reference for each in read] == [bought]


def test_a_line_that_another_service_wrote_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "web.log"
    file.write_text(json.dumps({"event": "order_created", **FORGED}))
    refused = refusal("hold_codes", "--log", file, "--since", "2020-01-01T00:00Z")
    assert f"{file}:1: this line is damaged, or not ours" in refused


@pytest.mark.parametrize("name", purchase_log.SIGNED_LIFE)
def test_a_changed_sign_of_life_is_refused(log: Any, name: str) -> None:
    file = log()
    (text,) = purchase_log_of(file)
    line = json.loads(text)
    file.write_text(json.dumps(line | {name: f"{line[name]}0"}))
    refused = refusal("hold_codes", "--log", file, "--since", "2020-01-01T00:00Z")
    assert f"{file}:1: this line is damaged, or not ours" in refused


@pytest.mark.parametrize("name", purchase_log.SIGNED)
def test_a_changed_line_is_refused(log: Any, merchant: Merchant, name: str) -> None:
    buy_topup(merchant)
    file = log()
    (line,) = lines(file)
    other = {"codes": [base64.b64encode(bytes(16)).decode()], "client_id": line["client_id"] + 1}
    file.write_text(json.dumps(line | {name: other.get(name, f"{line[name]}0")}))
    refused = refusal("hold_codes", "--log", file, "--since", "2020-01-01T00:00Z")
    assert f"{file}:1: this line is damaged, or not ours" in refused


def test_wrong_arguments_are_explained(tmp_path: Path) -> None:
    file = tmp_path / "missing.log"
    assert "No such file" in refusal("hold_codes", "--log", file, "--since", "2020-01-01T00:00Z")
    assert "--since" in refusal("hold_codes", "--log", file)
    for time in ("yesterday", "2026-02-31T00:00Z", "2026-11-22T10:00"):
        assert "is not a time" in refusal("hold_codes", "--log", file, "--since", time)
