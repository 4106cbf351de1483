"""Traces and error reports over real HTTP: they say where and when, and hold no secret."""

import http.client
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, closing
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode, urlsplit

import pytest
from django.conf import settings

from core.version import VERSION
from embedded.environment import PROJECT
from tests.concurrency.racing import codes_of, execute, weakened_sql
from tests.factories import (
    Merchant,
    make_field,
    make_merchant,
    make_operator,
    make_product,
    make_topup_product,
    move_now,
)
from tests.live import HOST, Answer, LiveServer, database_url, live_server
from tests.tasks.running import Broker, Celery, running_broker, running_crew, wait_until
from tests.telemetry.receiver import Receiver, running_receiver
from topups.fulfilment.transitions import Move
from topups.models import Fulfilment, TopUpProduct
from topups.tasks import refund_fulfilment

TOKEN = "424242:canary-of-telegram"
PLAYER = "player-canary"
IDEMPOTENCY_KEY = "idempotency-key-canary"
PASSWORD = "password canary"
FIELD = "field canary"
SQL_VALUE = "value canary"


@dataclass
class World:
    """A merchant at a web server which, like its worker, sends traces and reports to a receiver."""

    receiver: Receiver
    server: LiveServer
    worker: Celery
    broker: Broker
    merchant: Merchant

    def buy_topup(self, product: TopUpProduct, **fields: str) -> Any:
        body: dict[str, Any] = {"system_product_id": product.pk, "player_id": PLAYER}
        return self.merchant.buy(delivery_type="top_up", fields=fields, **body)


@pytest.fixture
def world(transactional_db: None) -> Iterator[World]:
    with ExitStack() as stack:
        receiver = stack.enter_context(running_receiver())
        broker = stack.enter_context(running_broker())
        environment = {
            **receiver.environment,
            "CELERY_BROKER_URL": broker.url,
            "TELEGRAM_BOT_TOKEN": TOKEN,
            "TELEGRAM_API_URL": "http://127.0.0.1:9",
        }
        crew = stack.enter_context(running_crew(broker.url, **environment))
        worker = crew.worker()
        server = stack.enter_context(live_server(environment, workers=1))
        merchant = make_merchant()
        merchant.http = server.http
        yield World(receiver, server, worker, broker, merchant)


def test_no_secret_is_in_a_trace_or_a_report(world: World) -> None:
    receiver, merchant = world.receiver, world.merchant
    product = make_product(price="1.00", codes=3)
    topup = make_topup_product()

    bought = merchant.buy(IDEMPOTENCY_KEY, product_id=product.pk, quantity=2)
    replayed = merchant.buy(IDEMPOTENCY_KEY, product_id=product.pk, quantity=2)
    fields = {str(make_field(topup).number): FIELD}
    ordered = world.buy_topup(topup, **fields)
    merchant.get("/products", search=IDEMPOTENCY_KEY)
    cookies = sign_in_with_a_wrong_password(world.server)
    failed = read_with_a_damaged_code(world, bought)
    broken_sql = buy_while_the_database_raises(world, topup, fields)
    fail_a_task(world, ordered.json()["data"]["reference"])

    assert [one.status_code for one in (bought, replayed, ordered)] == [201, 201, 201]
    assert [one.status_code for one in (failed, broken_sql)] == [500, 500]
    names = {"POST api/v1/orders", "orders_purchase_vouchers", "SELECT"}
    wait_until(lambda: all(map(receiver.span, names)), f"spans {names}")
    wait_until(lambda: receiver.span("run/topups.tasks.refund_fulfilment"), "the failed task")
    wait_until(lambda: receiver.report("task_failed"), "a report of the failed task")
    ids = {one["X-Request-Id"] for one in (failed, broken_sql)}
    wait_until(lambda: ids <= reported_ids(receiver), "a report of each failed request")

    report = receiver.report("unexpected_error")
    assert report is not None
    assert report["tags"]["request_id"] == failed["X-Request-Id"]
    assert report["release"] == f"voucher@{VERSION}"
    error = report["exception"]["values"][-1]
    assert error.keys() == {"type", "module", "stacktrace"}
    assert error["type"] == "CannotOpen"
    assert "orders.views" in {frame["module"] for frame in error["stacktrace"]["frames"]}

    secrets = {
        *(value for code in codes_of(bought) for value in (code, f"SN-{code}")),
        *(merchant.key, merchant.key.rpartition("_")[2], "Bearer", "Authorization"),
        *(IDEMPOTENCY_KEY, PLAYER, FIELD, PASSWORD, SQL_VALUE, TOKEN, *cookies),
        *(settings.SECRET_KEY, settings.CODE_ENCRYPTION_KEYS[0].partition(":")[2]),
        *(str(urlsplit(url).password) for url in (database_url(), world.broker.url)),
    }
    sent = b"\n".join(receiver.bodies).decode("utf-8", "replace")
    assert [secret for secret in sorted(secrets) if secret in sent] == []


def test_a_task_has_the_request_id_and_the_trace_of_its_request(world: World) -> None:
    ordered = world.buy_topup(make_topup_product())
    wait_until(lambda: world.worker.events("task_succeeded"), "the task of the announcement")
    run = "run/operators.telegram.tasks.show_order"
    wait_until(lambda: world.receiver.span(run), "the span of the task")
    wait_until(lambda: world.receiver.span("POST api/v1/orders"), "the span of the request")

    for event in ("task_started", "task_succeeded"):
        (line,) = world.worker.events(event)
        assert line["request_id"] == ordered["X-Request-Id"]
    request = world.receiver.span("POST api/v1/orders")
    assert world.receiver.span(run).trace_id == request.trace_id


def test_a_request_does_not_continue_a_trace_that_its_caller_names(world: World) -> None:
    theirs = "4bf92f3577b34da6a3ce929d0e0e4736"
    world.server.http.get(
        "/api/v1/ping",
        headers={
            "traceparent": f"00-{theirs}-00f067aa0ba902b7-00",
            "tracestate": "shop=tracestate-canary",
        },
    )
    wait_until(lambda: world.receiver.span("GET api/v1/ping"), "the span of the request")

    span = world.receiver.span("GET api/v1/ping")
    assert span.trace_id.hex() != theirs
    assert not span.parent_span_id
    assert b"tracestate-canary" not in b"".join(world.receiver.bodies)


def test_nothing_is_loaded_unless_asked_for() -> None:
    """The client of Redis loads OpenTelemetry's SDK if it is there, which sends nothing."""
    loads = (
        "import sys, django; django.setup(); import config.celery, config.urls\n"
        "import operators.admin, operators.telegram.updates.bot\n"
        "print(' '.join(sys.modules))"
    )
    loaded = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", loads],
        cwd=PROJECT,
        capture_output=True,
        text=True,
        check=True,
    ).stdout.split()

    assert "celery" in loaded
    senders = ("opentelemetry.exporter", "opentelemetry.instrumentation")
    assert not {"sentry_sdk", "core.tracing", *senders} & set(loaded)


@pytest.mark.parametrize(
    ("variable", "packages"), [("SENTRY_DSN", "sentry"), ("OTEL_EXPORTER_OTLP_ENDPOINT", "tracing")]
)
def test_a_receiver_without_its_packages_stops_the_start(variable: str, packages: str) -> None:
    hidden = "import sys; sys.modules.update({'sentry_sdk': None, 'opentelemetry.sdk': None})\n"
    started = subprocess.run(
        [sys.executable, "-c", f"{hidden}import django; django.setup()"],
        cwd=PROJECT,
        env={**os.environ, variable: "http://public@127.0.0.1:9/1"},
        capture_output=True,
        text=True,
        check=False,
    )

    assert started.returncode == 1
    line = f"{variable} is set, but requirements/{packages}.txt is not installed."
    assert started.stderr.strip() == f"voucher.E009: {line}"


def reported_ids(receiver: Receiver) -> set[str]:
    return {one["tags"].get("request_id", "") for one in receiver.reports()}


def sign_in_with_a_wrong_password(server: LiveServer) -> list[str]:
    """Returns the values of the cookies that the browser sent."""
    page = server.http.get("/admin/login/")
    cookie = str(page["Set-Cookie"]).partition(";")[0]
    value = cookie.partition("=")[2]
    form = {"username": "canary", "password": PASSWORD, "csrfmiddlewaretoken": value}
    server.http.post(
        "/admin/login/",
        urlencode(form),
        content_type="application/x-www-form-urlencoded",
        headers={"Cookie": cookie},
    )
    return [value]


def read_with_a_damaged_code(world: World, bought: Any) -> Answer:
    """The view has opened the first code, which is in a local variable, and fails at the next.

    No read is documented to fail, so no check of the response may be in the way.
    """
    reference = bought.json()["data"]["reference"]
    execute("SET session_replication_role = replica")
    execute(
        "UPDATE catalogue_vouchercode SET sealed = set_byte(sealed, 20, get_byte(sealed, 20) # 1)"
        " WHERE id = (SELECT max(code.id) FROM catalogue_vouchercode code"
        " JOIN orders_order sale ON sale.id = code.order_id WHERE sale.reference = %s)",
        reference,
    )
    execute("SET session_replication_role = origin")
    connection = http.client.HTTPConnection(HOST, world.server.port, timeout=30)
    with closing(connection):
        headers = {"Authorization": f"Bearer {world.merchant.key}"}
        connection.request("GET", f"/api/v1/orders/{reference}", headers=headers)
        response = connection.getresponse()
        return Answer(response.status, response.headers, response.read())


def buy_while_the_database_raises(
    world: World, product: TopUpProduct, fields: dict[str, str]
) -> Any:
    """The error of the database quotes what the merchant sent, as constraints do."""
    raises = f"BEGIN\n    RAISE EXCEPTION '{SQL_VALUE} %', '{PLAYER}';\n"
    with weakened_sql("orders/sql/purchase_topup.sql", ("BEGIN\n", raises)):
        return world.buy_topup(product, **fields)


def fail_a_task(world: World, reference: str) -> None:
    move_now(reference=reference, move=Move.REJECT, operator=make_operator(), note=PLAYER)
    execute("SET session_replication_role = replica")
    account = world.merchant.client.account_id
    execute("DELETE FROM wallets_wallet WHERE account_id = %s", account)
    execute("SET session_replication_role = origin")
    world.broker.send(refund_fulfilment, Fulfilment.objects.get(order_reference=reference).pk)
