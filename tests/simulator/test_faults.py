"""Each fault does to a purchase what the page says of it, in the real service."""

import http.client
import json
import os
import re
import time
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta
from typing import Any
from urllib.parse import urlencode

import pytest
from django.utils import timezone
from playwright.sync_api import Browser

from accounts.models import ApiKey
from idempotency.models import IdempotencyRecord
from simulator.faults import HEADER, Choices, Fault
from simulator.proxy import PAGE, Simulator, running
from simulator.shop import (
    MARK,
    Shop,
    check_settings,
    make_operator,
    open_books,
    open_shop,
    work_on_orders,
)
from tests.axe import axe
from tests.live import LiveServer
from tests.neighbour import ours
from wallets.models import EntryKind, LedgerEntry

pytestmark = pytest.mark.django_db(transaction=True)


@dataclass
class Desk:
    """A shop behind the simulator."""

    simulator: Simulator
    shop: Shop

    def send(self, fault: Fault | None = None, key: str = "one", **body: Any) -> tuple[int, bytes]:
        """Status and content; (0, b"") if no complete response came."""
        content = {"product_id": self.shop.products[0], "quantity": 1, **body}
        if "player_id" in body:
            content = body
        headers = {
            "Authorization": f"Bearer {self.shop.key}",
            "Content-Type": "application/json",
            "Idempotency-Key": key,
            **({HEADER: str(fault)} if fault else {}),
        }
        return self.request("POST", "/api/v1/orders", json.dumps(content), headers)

    def send_until_bought(self) -> None:
        """Sends the request again while another with its key is in progress."""
        ends = time.monotonic() + 20
        while self.send()[0] != 201:
            assert time.monotonic() < ends
            time.sleep(0.5)  # as a careful merchant pauses

    def buy_topup(self, player: str, key: str) -> str:
        product = self.shop.topup_products[0]
        _, content = self.send(
            key=key, delivery_type="top_up", system_product_id=product, player_id=player
        )
        return str(json.loads(content)["data"]["reference"])

    def read(self, reference: str) -> dict[str, Any]:
        headers = {"Authorization": f"Bearer {self.shop.key}"}
        _, content = self.request("GET", f"/api/v1/orders/{reference}", None, headers)
        return dict(json.loads(content)["data"])

    def request(
        self, method: str, path: str, body: str | None, headers: dict[str, str]
    ) -> tuple[int, bytes]:
        connection = http.client.HTTPConnection("127.0.0.1", self.simulator.server_port, timeout=60)
        try:
            connection.request(method, path, body, headers)
            response = connection.getresponse()
            return response.status, response.read()
        except (OSError, http.client.HTTPException):
            return 0, b""
        finally:
            connection.close()


@pytest.fixture
def desk(live: LiveServer) -> Iterator[Desk]:
    shop = open_shop(products=1, codes=20)
    with running(Simulator(live.port, Choices())) as simulator:
        yield Desk(simulator, shop)


def debits() -> int:
    return ours(LedgerEntry).filter(kind=EntryKind.PURCHASE).count()


def code_of(content: bytes) -> str | None:
    try:
        error = json.loads(content)["error"]
    except (ValueError, KeyError):
        return None
    return str(error.get("reason") or error["code"])


def test_codes_are_marked_as_not_real(desk: Desk) -> None:
    status, content = desk.send()
    assert status == 201
    assert json.loads(content)["data"]["codes"][0]["code"].startswith(MARK)


def test_the_key_for_books_opens_the_statement_of_the_shop(desk: Desk) -> None:
    _, content = desk.send()
    headers = {"Authorization": f"Bearer {open_books(desk.shop)}"}

    path = "/merchant/wallet/statement.json?kind=purchase"
    status, statement = desk.request("GET", path, None, headers)

    entries = json.loads(statement)["entries"]
    references = [entry["order_reference"] for entry in entries]
    assert (status, references) == (200, [json.loads(content)["data"]["reference"]])


@pytest.mark.parametrize(
    ("fault", "status", "code", "bought"),
    [
        (Fault.LOST_BEFORE, 0, None, 0),
        (Fault.LOST_AFTER, 0, None, 1),
        (Fault.CUT, 0, None, 1),
        (Fault.SLOW, 201, None, 1),
        (Fault.TWICE, 201, None, 1),
        (Fault.AGAIN_HOURS_LATER, 201, None, 1),
        (Fault.ERROR_BEFORE, 502, None, 0),
        (Fault.ERROR_AFTER, 502, None, 1),
        (Fault.TIMEOUT, 408, None, 1),
        (Fault.CROWD, 429, None, 0),
        (Fault.PORTAL, 201, None, 1),
        (Fault.UNAVAILABLE, 503, None, 0),
        (Fault.ABANDONED, 0, None, 1),
        (Fault.SERVER_ERROR, 500, "server_error", 1),
        (Fault.RATE_LIMITED, 429, "rate_limited", 0),
        (Fault.OUT_OF_STOCK, 409, "insufficient_stock", 0),
        (Fault.OUT_OF_BALANCE, 409, "insufficient_balance", 0),
        (Fault.PRICE_GONE, 409, "price_unavailable", 0),
        (Fault.PRICE_CHANGED, 201, None, 1),
        (Fault.SWITCHED_OFF, 409, "product_inactive", 0),
        (Fault.NOT_ALLOWED, 403, "ip_not_allowed", 0),
        (Fault.CLIENT_DISABLED, 403, "client_disabled", 0),
        (Fault.KEY_EXPIRED, 401, "invalid_token", 0),
    ],
)
def test_a_fault_does_what_it_says_and_ends(
    desk: Desk, fault: Fault, status: int, code: str | None, bought: int
) -> None:
    answer = desk.send(fault)

    if fault is not Fault.TWICE:  # one of the two may get request_in_progress
        assert (answer[0], code_of(answer[1])) == (status, code)
    if fault in (Fault.ABANDONED, Fault.SERVER_ERROR):
        assert code_of(desk.send()[1]) == "request_abandoned"
    elif fault is Fault.TWICE:
        desk.send_until_bought()
        time.sleep(0.5)  # a wrong second debit would come from the other, still on its way
    else:
        assert desk.send()[0] == 201
    assert debits() == 1
    assert bought <= 1


def bodies(shop: Shop) -> list[dict[str, Any]]:
    """A purchase of a code, and one of a top-up. Both cost the same."""
    topup = {"delivery_type": "top_up", "system_product_id": shop.topup_products[0]}
    return [{"product_id": shop.products[0], "quantity": 1}, {**topup, "player_id": "1"}]


@pytest.mark.parametrize(
    ("fault", "reason"),
    [(Fault.PRICE_GONE, "price_unavailable"), (Fault.SWITCHED_OFF, "product_inactive")],
)
def test_the_fault_of_a_product_meets_codes_and_topups(
    desk: Desk, fault: Fault, reason: str
) -> None:
    codes, topup = bodies(desk.shop)

    refused = [desk.send(fault, **codes), desk.send(fault, key="two", **topup)]
    bought = [desk.send(**codes), desk.send(key="two", **topup)]

    assert [(status, code_of(content)) for status, content in refused] == [(409, reason)] * 2
    assert [status for status, _ in bought] == [201, 201]


def test_a_price_changes_for_one_request(desk: Desk) -> None:
    prices: list[str] = []
    for body in bodies(desk.shop):
        for fault in (Fault.NONE, Fault.PRICE_CHANGED, Fault.NONE):
            _, content = desk.send(fault, key=f"key {len(prices)}", **body)
            prices.append(json.loads(content, parse_float=str)["data"]["total_price"])

    assert prices == ["0.10", "0.15", "0.10"] * 2


@pytest.mark.parametrize(
    ("later", "lost", "bought_again"),
    [
        (Fault.MINUTES_LATER, "request_abandoned", 0),
        (Fault.A_DAY_LATER, None, 1),
        (Fault.A_WEEK_LATER, None, 2),
    ],
)
def test_time_passes(desk: Desk, later: Fault, lost: str | None, bought_again: int) -> None:
    """The service waits five minutes for a request, remembers a lost one for a day, and a success
    for seven days. Then the same key buys again."""
    desk.send(key="lost")
    desk.send(key="stored")
    unfinished = IdempotencyRecord.objects.filter(client=desk.shop.client, key="lost")
    unfinished.update(response=None)
    before = code_of(desk.send(key="lost")[1])

    after_loss = desk.send(later, key="lost")
    after_success = desk.send(key="stored")

    assert before == "request_in_progress"
    assert code_of(after_loss[1]) == lost
    assert after_success[0] == 201
    assert debits() == 2 + bought_again


def test_an_expired_key_is_one_that_time_has_passed(desk: Desk) -> None:
    tomorrow = timezone.now() + timedelta(hours=23)
    ApiKey.objects.filter(client=desk.shop.client).update(expires_at=tomorrow)
    assert desk.send()[0] == 201
    assert code_of(desk.send(Fault.A_DAY_LATER)[1]) == "invalid_token"


def test_a_product_switched_off_between_two_pages_makes_a_copy_miss_one(live: LiveServer) -> None:
    shop = open_shop(products=3, codes=1)
    headers = {"Authorization": f"Bearer {shop.key}"}
    seen, totals = [], []
    with running(Simulator(live.port, Choices())) as simulator:
        desk = Desk(simulator, shop)
        for page, fault in enumerate((Fault.NONE, Fault.ONE_SWITCHED_OFF), start=1):
            path = f"/api/v1/products?per_page=1&page={page}"
            _, content = desk.request("GET", path, None, {**headers, HEADER: str(fault)})
            data = json.loads(content)["data"]
            seen += [item["id"] for item in data["items"]]
            totals.append(data["pagination"]["total"])

    assert seen == [shop.products[0], shop.products[2]]
    assert totals == [3, 2], "the total tells it"


def test_a_purchase_in_progress_says_so(desk: Desk) -> None:
    assert desk.send(Fault.IN_PROGRESS)[0] == 0
    assert code_of(desk.send()[1]) == "request_in_progress"
    desk.send_until_bought()
    assert debits() == 1


def test_a_fault_is_chosen_by_the_player_by_the_page_and_by_a_scenario(desk: Desk) -> None:
    product = desk.shop.topup_products[0]
    topup: dict[str, Any] = {"delivery_type": "top_up", "system_product_id": product}
    assert desk.send(player_id="fault-timeout", **topup)[0] == 408

    form = urlencode({"fault": "crowd", "requests": "2"})
    kind = {"Content-Type": "application/x-www-form-urlencoded"}
    assert desk.request("POST", PAGE, form, kind)[0] == 303
    for wrong in ("fault=nonsense", "fault=crowd&requests=many", ""):
        assert desk.request("POST", PAGE, wrong, kind)[0] == 400
    without_header = [desk.request("GET", "/api/v1/ping", None, {})[0] for _ in range(3)]
    assert without_header == [429, 429, 401]

    scenario = {"seed": 3, "rate": 0.5, "faults": ["cut"], "products": {"7": "portal"}}
    first, second = Choices(scenario), Choices(scenario)
    chosen = [first.choose(None, b"") for _ in range(50)]
    assert chosen == [second.choose(None, b"") for _ in range(50)]
    assert {Fault.CUT, Fault.NONE} == set(chosen)
    assert first.choose(None, b'{"product_id": 7}') is Fault.PORTAL
    assert desk.request("GET", "/api/v1/ping", None, {HEADER: "nonsense"})[0] == 400


def test_the_fault_of_a_body_does_not_depend_on_other_requests() -> None:
    scenario = {"seed": 3, "rate": 0.5, "faults": ["cut", "timeout"]}
    alone, mixed = Choices(scenario), Choices(scenario)
    first, second = b'{"player_id": "1"}', b'{"player_id": "2"}'

    expected = [alone.choose(None, body) for body in [first, *[second] * 20]][1:]
    mixed.choose(None, first)
    found = []
    for _ in range(20):
        mixed.choose(None, b"")
        found.append(mixed.choose(None, second))
        mixed.choose(None, first)

    assert found == expected
    assert len(set(expected)) == 3


def test_operators_do_what_the_player_id_asks(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    references = {
        word: desk.buy_topup(f"{word}-1", word)
        for word in ("deliver", "reject", "review", "unrefunded", "wait", "slow")
    }
    operator = make_operator()
    work_on_orders(operator)
    ended = {word: desk.read(reference) for word, reference in references.items()}

    assert {word: order["fulfilment_status"] for word, order in ended.items()} == {
        "deliver": "completed",
        "reject": "failed",
        "review": "pending_review",
        "unrefunded": "failed",
        "wait": "pending",
        "slow": "pending",
    }
    assert ended["reject"]["refunded"]
    assert not ended["unrefunded"]["refunded"]

    monkeypatch.setattr("simulator.shop.SLOW_AFTER", timedelta(0))
    work_on_orders(operator)

    states = {word: desk.read(references[word])["fulfilment_status"] for word in ("wait", "slow")}
    assert states == {"wait": "pending", "slow": "completed"}


@pytest.mark.parametrize(
    ("change", "word"),
    [
        ({"HTTPS": True}, "HTTPS"),
        ({"PUBLIC_URL": "https://api.example"}, "PUBLIC_URL"),
        ({"TELEGRAM_BOT_TOKEN": "1:secret"}, "TELEGRAM_BOT_TOKEN"),
    ],
)
def test_settings_of_production_are_refused(
    settings: Any, change: dict[str, Any], word: str
) -> None:
    settings.PUBLIC_URL = "http://localhost:8000"
    for name, value in change.items():
        setattr(settings, name, value)
    (problem,) = check_settings()
    assert problem.id == "simulator.E001"
    assert re.search(word, problem.msg)


def test_a_database_on_another_host_is_refused(
    settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings.PUBLIC_URL = "http://localhost:8000"
    monkeypatch.setitem(settings.DATABASES["default"], "HOST", "db.example")
    (problem,) = check_settings()
    assert "another host" in problem.msg


def test_data_of_others_is_refused(settings: Any) -> None:
    """The neighbour is no simulated client."""
    settings.PUBLIC_URL = "http://localhost:8000"
    assert [problem.id for problem in check_settings()] == ["simulator.E002"]


@pytest.mark.browser
@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [360, 1280])
def test_the_page_is_accessible(desk: Desk, chromium: Browser, scheme: Any, width: int) -> None:
    desk.send(Fault.TIMEOUT)
    page = chromium.new_page(color_scheme=scheme, viewport={"width": width, "height": 800})
    page.goto(f"http://127.0.0.1:{desk.simulator.server_port}{PAGE}")
    assert axe.run(page).response["violations"] == []
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    if folder := os.environ.get("SIMULATOR_PICTURES"):
        page.screenshot(path=f"{folder}/simulator-{scheme}-{width}.png")
