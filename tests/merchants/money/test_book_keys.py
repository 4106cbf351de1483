"""A program downloads an account's books with a key that opens nothing else."""

import csv
import io
import json
import os
import subprocess
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from django.test import Client

from audit.models import AuditAction, AuditEntry
from core.inputs import InputProblem
from merchants.docs.docs_content import BOOKS, SNIPPETS
from merchants.models import BookKey, Role
from merchants.money.book_keys import (
    MAX_LIVE_KEYS,
    find_book_key,
    issue_book_key,
    revoke_book_key,
)
from merchants.people import access
from tests.factories import Merchant, make_account, make_merchant, make_product
from tests.live import LiveServer
from tests.merchants.ledger import BEGIN, book_many, close_days_before
from tests.merchants.people import PASSWORD, browser_of, make_member
from tests.merchants.sign_in.test_asked_again import unconfirmed
from wallets.evidence.roots import sign_ledger
from wallets.transfers import announce_transfer

pytestmark = pytest.mark.django_db(transaction=True)

STATEMENT = "/merchant/wallet/statement.csv"
SIGNED = "/merchant/wallet/signed-statement.json"
ORDERS = "/merchant/orders/orders.csv"
PRICES = "/merchant/prices/prices.csv"
FILES = [STATEMENT, "/merchant/wallet/statement.json", SIGNED, ORDERS, PRICES]


@pytest.fixture
def merchant() -> Merchant:
    """A merchant with one order, in a signed ledger."""
    merchant = make_merchant()
    product = make_product(price="9.00", codes=1)
    assert merchant.buy("order-1", product_id=product.pk, quantity=1).status_code == 201
    sign_ledger()
    return merchant


@pytest.fixture
def key(merchant: Merchant) -> str:
    return issue_book_key(account=merchant.account, actor=make_member(merchant.account).user)


def get(address: str, key: str) -> Any:
    return Client(headers={"Authorization": f"Bearer {key}"}).get(address)


def bytes_of(answer: Any) -> bytes:
    return b"".join(answer.streaming_content) if answer.streaming else answer.content


@pytest.mark.parametrize("address", FILES)
def test_a_program_downloads_each_file_of_the_books(
    merchant: Merchant, key: str, address: str
) -> None:
    answer = get(f"{address}?since=2020-01-01", key)

    assert answer.status_code == 200
    name = address.rpartition("/")[2]
    assert answer["Content-Disposition"] == f'attachment; filename="{name}"'
    content = bytes_of(answer).decode()
    code = merchant.get("/orders").json()["data"]["items"][0]["codes"][0]["code"]
    assert code not in content
    if address != PRICES:
        assert merchant.get("/orders").json()["data"]["items"][0]["reference"] in content
    row = BookKey.objects.get()
    entry = AuditEntry.objects.filter(action=AuditAction.EXPORTED).get()
    assert entry.actor_name == f"key:{row.prefix}"
    assert entry.reference == name
    assert entry.note == ("" if address == PRICES else "since 2020-01-01")
    assert key not in str(vars(entry))
    assert row.last_used_at is not None


def test_a_program_and_a_member_download_the_same(merchant: Merchant, key: str) -> None:
    browser = browser_of(make_member(merchant.account, Role.VIEWER))
    for address in FILES:
        assert bytes_of(get(address, key)) == bytes_of(browser.get(address))


def test_a_key_opens_only_the_files_of_its_account(merchant: Merchant, key: str) -> None:
    other = make_merchant()
    other.buy("order-1", product_id=make_product(codes=1).pk, quantity=1)
    (line,) = csv.DictReader(io.StringIO(bytes_of(get(ORDERS, key)).decode()))
    assert line["client"] == merchant.client.name
    for path in ("/merchant/wallet/", "/merchant/wallet/months/", "/merchant/people/people.csv"):
        page = get(path, key)  # is for people
        assert page.status_code == 403
        assert page.json() == {"message": "No key opens this address. Sign in with a browser."}
    answer = get("/api/v1/ping", key)
    assert answer.json()["error"]["code"] == "invalid_token"


@pytest.mark.parametrize("text", ["", "Bearer", "Bearer bk_0", "Basic YTpi", "Bearer {api_key}"])
@pytest.mark.parametrize("address", FILES)
def test_anything_else_opens_no_file(merchant: Merchant, address: str, text: str) -> None:
    authorization = text.format(api_key=merchant.key)
    answer = Client(headers={"Authorization": authorization}).get(address)
    assert answer.status_code == 401
    assert answer["WWW-Authenticate"] == "Bearer"
    assert answer.json() == {"message": "This is not a live key for books."}


@pytest.mark.usefixtures("alone")
def test_a_program_downloads_statements_of_months_and_transfers() -> None:
    account = make_account(balance="0")
    owner = make_member(account).user
    book_many(account, 2, amount="1.00", begin=BEGIN)
    close_days_before(date(2026, 2, 1))
    announce_transfer(account=account, amount=Decimal(5), reference="INV-1", actor=owner)
    key = issue_book_key(account=account, actor=owner)
    browser = browser_of(make_member(account, Role.VIEWER))
    browser.post("/merchant/profile/time-zone/", {"language": "de", "time_zone": "UTC"})

    for format in ("csv", "xlsx", "pdf"):
        answer = get(f"/merchant/wallet/months/2026-01.{format}", key)
        assert answer.status_code == 200
        name = f"statement-2026-01.{format}"
        assert answer["Content-Disposition"] == f'attachment; filename="{name}"'
    csv_of_program, csv_of_member = (
        bytes_of(one.get("/merchant/wallet/months/2026-01.csv"))
        for one in (Client(headers={"Authorization": f"Bearer {key}"}), browser)
    )
    assert csv_of_program == csv_of_member
    assert b"INV-1" in bytes_of(get("/merchant/wallet/transfers.csv", key))
    other = issue_book_key(account=make_merchant().account, actor=owner)
    for wrong, month in ((key, "2026-02"), (key, "2025-12"), (key, "x"), (other, "2026-01")):
        answer = get(f"/merchant/wallet/months/{month}.csv", wrong)
        assert (answer.status_code, answer.json()) == (404, {"message": "There is no such file."})
    assert b"INV-1" not in bytes_of(get("/merchant/wallet/transfers.csv", other))


@pytest.mark.parametrize(
    ("method", "address", "status"),
    [
        ("get", "/merchant/nowhere/", 404),
        ("get", "/merchant/wallet/statement.pdf", 404),
        ("post", STATEMENT, 403),
        ("get", "/merchant/wallet/", 403),
    ],
)
def test_each_refusal_of_a_program_is_json(
    key: str, method: str, address: str, status: int
) -> None:
    program = Client(enforce_csrf_checks=True, headers={"Authorization": f"Bearer {key}"})
    answer = getattr(program, method)(address)
    assert answer.status_code == status
    assert answer.json().keys() == {"message"}


def test_a_revoked_key_opens_nothing(merchant: Merchant, key: str) -> None:
    row = BookKey.objects.get()
    assert revoke_book_key(key=row, actor=make_member(merchant.account).user)
    assert not revoke_book_key(key=row, actor=make_member(merchant.account).user)
    assert get(STATEMENT, key).status_code == 401
    assert find_book_key(key) is None


def test_a_key_with_another_secret_opens_nothing(key: str) -> None:
    assert get(STATEMENT, key[:-1] + ("0" if key[-1] != "0" else "1")).status_code == 401


def test_a_period_without_a_signed_root_answers_an_error(merchant: Merchant, key: str) -> None:
    answer = get(f"{SIGNED}?until=2020-01-01", key)
    assert answer.status_code == 404
    assert "signed" in answer.json()["message"]


@pytest.mark.parametrize("address", [STATEMENT, SIGNED, ORDERS])
def test_a_bad_filter_answers_an_error(key: str, address: str) -> None:
    answer = get(f"{address}?since=yesterday", key)
    assert answer.status_code == 400
    assert "2026-11-21" in answer.json()["message"]


def test_programs_are_limited(key: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(access, "ACCOUNT_HEAVY_PAGES_PER_MINUTE", 2)
    statuses = [get(PRICES, key).status_code for _ in range(3)]
    assert statuses == [200, 200, 429]
    answer = get(PRICES, key)
    assert 1 <= int(answer["Retry-After"]) <= 60
    assert answer["Retry-After"] in answer.json()["message"]


def test_an_owner_creates_a_key_and_sees_it_once(merchant: Merchant) -> None:
    owner = make_member(merchant.account)
    browser = unconfirmed(browser_of(owner))
    page = browser.get("/merchant/clients/books/issue/")
    form = page.context["form"]
    posted = {"form": form["form"].value()}
    assert browser.post(page.request["PATH_INFO"], posted).status_code == 200, "no password"
    assert not BookKey.objects.exists()

    shown = browser.post(page.request["PATH_INFO"], {**posted, "password": PASSWORD})

    key = shown.context["key"]
    row = BookKey.objects.get()
    assert find_book_key(key) == row
    assert key in shown.content.decode()
    again = browser.post(page.request["PATH_INFO"], {**posted, "password": PASSWORD}, follow=True)
    assert "already created one" in again.content.decode()
    listed = browser.get("/merchant/clients/").content.decode()
    assert row.prefix in listed
    assert key not in listed
    assert {entry.action for entry in AuditEntry.objects.filter(reference=row.prefix)} == {
        AuditAction.KEY_ISSUED
    }
    browser.post(f"/merchant/clients/books/{row.pk}/revoke/", follow=True)
    assert find_book_key(key) is None
    assert row.prefix not in browser.get("/merchant/clients/").content.decode()


def test_an_account_has_few_keys(merchant: Merchant) -> None:
    owner = make_member(merchant.account).user
    for _ in range(MAX_LIVE_KEYS):
        issue_book_key(account=merchant.account, actor=owner)
    with pytest.raises(InputProblem, match="revoke one first"):
        issue_book_key(account=merchant.account, actor=owner)


def test_the_digest_opens_nothing(key: str) -> None:
    row = BookKey.objects.get()
    assert row.digest not in key
    assert key not in json.dumps(list(BookKey.objects.values("prefix", "digest")))
    assert str(row) == row.prefix


def download(live: LiveServer, folder: Path, key: str, *days: str) -> Any:
    return subprocess.run(
        ["sh", SNIPPETS / BOOKS, *days],
        cwd=folder,
        env={
            "PATH": os.environ["PATH"],
            "VOUCHER_SITE": live.base_url,
            "VOUCHER_BOOK_KEY": key,
        },
        capture_output=True,
        text=True,
        check=False,
    )


def test_the_program_of_the_documentation_downloads_the_books(
    live: LiveServer, merchant: Merchant, key: str, tmp_path: Path
) -> None:
    without_days = download(live, tmp_path, key)
    assert (without_days.returncode, without_days.stderr) == (
        2,
        "Usage: books.sh 2026-10-01 2026-10-31\n",
    )
    done = download(live, tmp_path, key, "2026-01-01", "2199-12-31")

    assert done.returncode == 0, done.stderr
    assert {file.name for file in tmp_path.iterdir()} == {
        *("statement.csv", "orders.csv", "prices.csv", "signed-statement.json")
    }
    reference = merchant.get("/orders").json()["data"]["items"][0]["reference"]
    for name in ("statement.csv", "orders.csv", "signed-statement.json"):
        assert reference in (tmp_path / name).read_text()


def test_the_program_of_the_documentation_fails_without_a_signed_root(
    live: LiveServer, key: str, tmp_path: Path
) -> None:
    done = download(live, tmp_path, key, "2020-01-01", "2020-01-31")
    assert done.returncode != 0
    assert key not in done.stdout + done.stderr
    assert "signed" in (tmp_path / "signed-statement.json").read_text()
