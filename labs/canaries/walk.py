"""The paths that secrets take. Each function walks one area with canaries of its own."""

import csv
import http.client
import re
from contextlib import closing
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from django.contrib.auth.models import User

from catalogue.models import Shelf, VoucherCode
from labs.canaries.browser import Browser
from labs.canaries.running import Running, text_of
from merchants.models import Role
from operators.imports.models import FileImport, ImportKind, ImportState
from operators.imports.pages import upload_url
from operators.imports.tasks import run_import
from operators.telegram.models import PlatformSettings
from operators.telegram.staff_links import issue_code
from orders.models import Order
from tests.concurrency.racing import execute, weakened_sql
from tests.factories import (
    Merchant,
    make_field,
    make_merchant,
    make_operator,
    make_product,
    make_topup_product,
    move_now,
)
from tests.live import HOST, Answer
from tests.merchants.people import make_member
from tests.neighbour import ours
from tests.operators.back_office import list_url, shown_models, signed_in, url
from tests.tasks.running import wait_until
from topups.fulfilment.transitions import Move
from topups.models import Fulfilment
from topups.tasks import refund_fulfilment

LATER = 60.0  # seconds until a worker, a bot or a mail server has done its part


def import_codes(running: Running, folder: Path, *, number: int) -> int:
    """Imports codes by command, then a file with a repeated code. Returns the product."""
    canaries, product = running.canaries, make_product(price="1.00").pk
    rows = [
        [
            canaries.make("code"),
            canaries.make("serial number", prefix="SN"),
            canaries.make("PIN", prefix="P"),
        ]
        for _ in range(number)
    ]
    bad = [*rows[:1], ["", canaries.make("serial number"), ""]]
    for name, content in (("codes.csv", rows), ("again.csv", rows), ("bad.csv", bad)):
        with (folder / name).open("w", newline="") as file:
            csv.writer(file).writerows([["code", "serial_number", "pin_code"], *content])
        running.command("import_codes", product, folder / name)
    return product


def make_buyer(running: Running) -> Merchant:
    merchant = make_merchant()
    merchant.http = running.server.http
    running.canaries.add("API key", merchant.key, merchant.key.rpartition("_")[2])
    return merchant


def buy(running: Running, merchant: Merchant, product: int) -> str:
    """A purchase, its replay, and every kind of refusal. Returns the order's reference."""
    key = running.canaries.make("idempotency key")
    bought = merchant.buy(key, product_id=product, quantity=3)
    replayed = merchant.buy(key, product_id=product, quantity=3)
    assert (bought.status_code, replayed.content) == (201, bought.content)
    code = bought.json()["data"]["codes"][0]["code"]
    refused = [
        merchant.buy(key, product_id=product, quantity=1),
        merchant.buy(running.canaries.make("idempotency key"), product_id=product, quantity=100),
        merchant.buy(merchant_reference=code, quantity=1),  # people paste what they have
        merchant.buy("é", product_id=product, quantity=1),
        merchant.post(f'{{"product_id": "{code}"', key=running.canaries.make("idempotency key")),
        merchant.get("/products", search=code),
        merchant.get("/products", api_key=merchant.key),
    ]
    statuses = [answer.status_code for answer in refused]
    assert set(statuses) == {200, 400, 404, 409, 422}, statuses
    wrong = Merchant.__new__(Merchant)
    wrong.client, wrong.http = merchant.client, merchant.http
    wrong.key = running.canaries.make("a wrong API key", prefix="vk_")
    assert wrong.get("/balance").status_code == 401
    return str(bought.json()["data"]["reference"])


def buy_topups(running: Running, merchant: Merchant) -> str:
    """A top-up that is announced, refused ones, and one whose SQL fails. Returns the reference."""
    group = running.telegram.add_group("Operators")
    PlatformSettings.objects.create(announcing=True, chat_id=group.id)
    product = make_topup_product(announce=True)
    asked = str(make_field(product).number)
    player, value = (
        running.canaries.make("player id"),
        running.canaries.make("field of a top-up"),
    )
    body: dict[str, Any] = {
        "delivery_type": "top_up",
        "system_product_id": product.pk,
        "player_id": player,
        "fields": {asked: value},
    }
    bought = merchant.buy(running.canaries.make("idempotency key"), **body)
    assert bought.status_code == 201
    assert merchant.buy(**{**body, "player_id": f"{player} !"}).status_code == 422
    assert merchant.buy(**{**body, "fields": {asked: player}}).status_code == 422
    raises = f"BEGIN\n    RAISE EXCEPTION 'a bad row' USING DETAIL = 'Key is ({player}).';\n"
    with weakened_sql("orders/sql/purchase_topup.sql", ("BEGIN\n", raises)):
        failed = merchant.buy(running.canaries.make("idempotency key"), **body)
    assert failed.status_code == 500
    running.error_pages.append(failed.content)
    reference = str(bought.json()["data"]["reference"])
    wait_until(lambda: reference in str(running.telegram.calls), "the announcement", LATER)
    return reference


def fail(running: Running, merchant: Merchant, product: int, topup: str) -> None:
    """Exceptions after the commit, while a code is open, and in a task."""
    fails = ("BEGIN\n", "BEGIN\n    RAISE EXCEPTION 'not stored';\n")
    with weakened_sql("idempotency/sql/store_response.sql", fails):
        bought = merchant.buy(
            running.canaries.make("idempotency key"), product_id=product, quantity=2
        )
    assert bought.status_code == 201
    damage(
        "UPDATE catalogue_vouchercode SET sealed = set_byte(sealed, 20, get_byte(sealed, 20) # 1)"
        " WHERE id = (SELECT max(id) FROM catalogue_vouchercode WHERE order_id IS NOT NULL)"
    )
    reference = bought.json()["data"]["reference"]
    path = f"/api/v1/orders/{reference}"
    failed = raw_get(running, path, merchant.key)
    assert failed.status_code == 500
    running.error_pages.append(failed.content)
    running.command("reconcile", "--decrypt")
    # Without its wallet the refund fails.
    damage("DELETE FROM wallets_wallet WHERE account_id = %s", merchant.client.account_id)
    note = running.canaries.values["player id"][0]
    move_now(reference=topup, move=Move.REJECT, operator=make_operator(), note=note)
    refund = Fulfilment.objects.get(order_reference=topup).pk
    running.broker.send(refund_fulfilment, refund)
    wait_until(lambda: running.worker.events("task_failed"), "a failed task", LATER)


def use_merchant_site(running: Running, merchant: Merchant) -> None:
    """Signing in, keys, statements, invitations and passwords."""
    canaries, account = running.canaries, merchant.client.account
    password, new = canaries.make("password"), canaries.make("password")
    member = make_member(account)
    member.user.set_password(password)
    member.user.save()
    browser = Browser(running.server)
    form = {"username": member.user.email}
    browser.post("/merchant/sign-in/", {**form, "password": canaries.make("a wrong password")})
    page = browser.post("/merchant/sign-in/", {**form, "password": password})
    assert member.account.name in page.content.decode()
    client = f"/merchant/clients/{merchant.client.pk}"
    again = {"password": password}
    for path, sent in (("keys/issue/", again), ("keys/rotate/", {"overlap_hours": 24})):
        shown = browser.post(f"{client}/{path}", sent)
        (key,) = set(re.findall(r"vk_\w+", shown.content.decode()))
        canaries.add("API key", key, key.rpartition("_")[2])
    reference = ours(Order).earliest("pk").reference
    for path in (
        *("", "clients/", "wallet/", "wallet/statement.csv", "wallet/statement.json", "orders/"),
        *(f"orders/{reference}/", "people/", "profile/", "references/"),
    ):
        assert browser.get(f"/merchant/{path}").status_code == 200
    assert browser.get("/docs/").status_code == 200
    code = canaries.values["code"][0]
    for path in (f"?code={code}", f"?q={merchant.key}"):
        running.error_pages.append(browser.get(f"/merchant/nothing/{path}").content)
    for place in ("search", "orders", "requests"):
        for secret in (code, merchant.key, canaries.values["player id"][0]):
            found = browser.post(f"/merchant/{place}/", {"q": secret})
            assert found.status_code == 200, place
    browser.post("/merchant/profile/password/", {
        "old_password": password, "new_password1": new, "new_password2": new,
    })  # fmt: skip
    browser.post("/merchant/people/invite/", {"email": "new@b.example", "role": Role.VIEWER.value})
    follow_links(running, member.user.email)
    canaries.add("session", *browser.sessions)
    canaries.add("CSRF token", *browser.csrf_tokens)


def follow_links(running: Running, email: str) -> None:
    """The links in the emails of an invitation and of a forgotten password."""
    canaries = running.canaries
    Browser(running.server).post("/merchant/password/forgotten/", {"email": email})
    for name, page in (("invitation link", "/merchant/join/"), ("reset link", "/password/new/")):
        path = wait_for_link(running, page)
        place, _, token = path.partition("#")
        canaries.add(name, token)
        browser, password = Browser(running.server), canaries.make("password")
        browser.get(place)
        browser.post(place, {"token": token})
        browser.post(place, {"token": token, "new_password1": password, "new_password2": password})


def wait_for_link(running: Running, page: str) -> str:
    """The path and token of the link to this page in an email that has arrived."""

    def find() -> list[str]:
        text = b"\n".join(map(text_of, running.mail.messages)).decode()
        return [each for each in re.findall(r"https?://[^\s\"<]+", text) if page in each]

    wait_until(find, f"an email with a link to {page}", LATER)
    place = urlsplit(find()[0])
    return f"{place.path}#{place.fragment}"


def use_back_office(running: Running) -> None:
    """Every list, pages of a code and an order, revealing a code, and searching for one."""
    canaries = running.canaries
    password = canaries.make("password")
    staff = User.objects.create_superuser("boss", "boss@b.example", password)
    Browser(running.server).post("/admin/login/", {
        "username": "boss", "password": canaries.make("a wrong password"),
    })  # fmt: skip
    cookies = {name: morsel.value for name, morsel in signed_in(staff).cookies.items()}
    canaries.add("session", cookies["sessionid"])
    browser = Browser(running.server, cookies)
    code, order = canaries.values["code"][0], ours(Order).earliest("pk")
    for model in shown_models():
        if model is not PlatformSettings:
            assert browser.get(list_url(model)).status_code == 200
    sold = VoucherCode.objects.filter(order_id=order.pk).earliest("pk")
    for row in (order, sold):
        assert browser.get(url(row)).status_code == 200
    shown = browser.post(url(sold, "reveal"), {"note": "the merchant lost it"})
    assert code in shown.content.decode()
    browser.get(f"/admin/catalogue/vouchercode/?q={code}")
    running.error_pages.append(browser.get(f"/admin/nothing/?q={code}").content)
    for secret in (code, *canaries.values["API key"][:1], canaries.values["player id"][0]):
        assert browser.post("/admin/search/", {"text": secret}, follow=False).status_code in {
            200,
            302,
        }
    upload_codes(running, browser, sold.shelf)
    canaries.add("CSRF token", *browser.csrf_tokens)


def upload_codes(running: Running, browser: Browser, shelf: Shelf) -> None:
    """A file with a good and a repeated code, which a worker checks."""
    codes = [running.canaries.make("code") for _ in range(2)]
    text = "\n".join(["code", *codes, codes[0], ""])
    page = upload_url(ImportKind.CODES, shelf)
    answer = browser.post(page, {"shelf": shelf.pk}, file=("delivery.csv", text))
    assert answer.status_code == 200
    row = FileImport.objects.latest("pk")
    running.broker.send(run_import, row.pk)
    refused = FileImport.objects.filter(pk=row.pk, state=ImportState.REFUSED)
    wait_until(refused.exists, "the check of the file", LATER)


def link_telegram(running: Running) -> None:
    """A member of staff types the code that links their Telegram account."""
    code = issue_code(user=make_operator().user)
    running.canaries.add("link code of Telegram", code)
    person = running.telegram.add_user("anna")
    chat = running.telegram.private(person)
    before = len(running.telegram.bot_messages(chat))
    running.telegram.type(person, chat, f"/start {code}")
    wait_until(
        lambda: len(running.telegram.bot_messages(chat)) > before, "an answer of the bot", LATER
    )


def raw_get(running: Running, path: str, key: str) -> Answer:
    """A GET whose answer is not checked: no read is documented to fail."""
    connection = http.client.HTTPConnection(HOST, running.server.port, timeout=30)
    with closing(connection):
        connection.request("GET", path, headers={"Authorization": f"Bearer {key}"})
        response = connection.getresponse()
        return Answer(response.status, response.headers, response.read())


def damage(statement: str, *arguments: object) -> None:
    """Runs a statement that the database would refuse."""
    execute("SET session_replication_role = replica")
    execute(statement, *arguments)
    execute("SET session_replication_role = origin")
