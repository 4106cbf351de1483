"""A worker builds files that are too large or too slow for a request, in sealed parts."""

import io
import json
import tracemalloc
from collections.abc import Callable, Generator
from datetime import timedelta
from decimal import Decimal
from typing import Any
from unittest.mock import Mock

import openpyxl
import pytest
from django.contrib.auth.models import Permission, User
from django.db import DatabaseError, connection, reset_queries
from django.test import Client
from django.utils import timezone

from accounts.preferences.time_zones import IN_SESSION, LANGUAGE_IN_SESSION
from audit.models import AuditAction, AuditEntry
from core.database.sealing import CannotOpen, Context, seal
from merchants.frame import downloads, prepared_files
from merchants.frame.prepared_files import (
    build_file,
    cancel_file,
    may_download,
    open_part,
    open_request,
    row_of_file,
    row_of_part,
    sweep_files,
)
from merchants.models import BookKey, FileState, Membership, PreparedFile, PreparedPart
from merchants.money.book_keys import issue_book_key, revoke_book_key
from merchants.people import access
from orders.models import Order
from tests.factories import Merchant, deposit, make_product
from tests.merchants.ledger import book_many
from tests.merchants.people import browser_of, make_member
from tests.neighbour import ours
from tests.operators.back_office import make_staff, signed_in

pytestmark = pytest.mark.django_db

MANY = 6_000  # 3 MB in memory
STATEMENT = "/merchant/wallet/statement.csv"
MEMBERS = [
    *(STATEMENT, "/merchant/wallet/statement.json", "/merchant/wallet/statement.xlsx"),
    *("/merchant/orders/orders.csv", "/merchant/orders/orders.xlsx?status=completed"),
    *("/merchant/prices/prices.csv", "/merchant/requests/requests.xlsx"),
    "/merchant/people/people.csv",
]
STAFF = [
    "/admin/orders/order/export.csv?kind=voucher",
    "/admin/orders/order/export.xlsx",
    "/admin/catalogue/vouchercode/export.csv",
    "/admin/accounts/account/export.xlsx",
    "/admin/margins/file/?by=product",
    "/admin/trail/file/?action=created",
]


@pytest.fixture
def sold(merchant: Merchant) -> Merchant:
    """A merchant with three orders."""
    product = make_product(codes=3)
    for number in range(3):
        assert merchant.buy(f"key-{number}", product_id=product.pk, quantity=1).status_code == 201
    return merchant


@pytest.fixture
def member(sold: Merchant) -> Membership:
    return make_member(sold.account)


@pytest.fixture
def large(monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    """Once called, each file is too large for a request, and its parts have 200 bytes."""

    def begin() -> None:
        monkeypatch.setattr(downloads, "WHOLE_BYTES", -1)
        monkeypatch.setattr(prepared_files, "PART_BYTES", 200)
        monkeypatch.setattr("core.files.table_files.LINES_AT_ONCE", 1)

    return begin


def in_german_and_tokyo(browser: Client) -> Client:
    session = browser.session
    session[LANGUAGE_IN_SESSION], session[IN_SESSION] = "de", "Asia/Tokyo"
    session.save()
    return browser


def whole(answer: Any) -> bytes:
    assert answer.status_code == 200, answer.request["PATH_INFO"]
    return bytes(answer.content)


def built(browser: Client, address: str) -> tuple[str, bytes]:
    """The page of a file that a worker builds, and its parts together."""
    answer = browser.get(address)
    assert answer.status_code == 302, address
    page = answer["Location"]
    assert "data-unfinished" in browser.get(page).content.decode()
    files = PreparedFile.objects.filter(token=page.split("/")[-2])
    build_file(pk=files.get().pk)
    text = browser.get(page).content.decode()
    row = files.get()
    assert row.state == FileState.READY, (address, row.problem)
    assert f'download="{row.name}"' in text
    parts = [whole(browser.get(f"{page}{number}/")) for number in range(row.parts)]
    assert browser.get(f"{page}{row.parts}/").status_code == 404
    assert sum(map(len, parts)) == row.size
    return page, b"".join(parts)


def table_of(content: bytes) -> list[Any]:
    if not content.startswith(b"PK"):
        return content.splitlines()
    (sheet,) = openpyxl.load_workbook(io.BytesIO(content)).worksheets
    return [[cell.value for cell in row] for row in sheet]


def test_a_worker_builds_what_a_request_would_send(
    member: Membership, large: Callable[[], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Language, time zone, filter and columns are those of the reader."""
    people = {
        "member": in_german_and_tokyo(browser_of(member)),
        "staff": in_german_and_tokyo(signed_in()),
    }
    at_once = {
        (who, path): table_of(whole(people[who].get(path)))
        for who, paths in (("member", MEMBERS), ("staff", STAFF))
        for path in paths
    }
    large()
    monkeypatch.setattr(access, "HEAVY_PAGES_PER_MINUTE", 100)
    monkeypatch.setattr(access, "ACCOUNT_HEAVY_PAGES_PER_MINUTE", 100)

    different = []
    for (who, path), expected in at_once.items():
        _, content = built(people[who], path)
        table = table_of(content)
        # The trail has more lines: about the files.
        same = set(expected) <= set(table) if "trail" in path else table == expected
        if not same:
            different.append((path, [one for one in table if one not in expected]))

    assert different == []


def test_only_who_asked_for_a_file_gets_it(
    sold: Merchant, member: Membership, large: Callable[[], None]
) -> None:
    large()
    page, content = built(browser_of(member), STATEMENT)
    assert len(content.splitlines()) == 5
    colleague = browser_of(make_member(sold.account))
    key = issue_book_key(account=sold.account, actor=member.user)
    program = Client(headers={"Authorization": f"Bearer {key}"})
    admin_page = page.replace("/merchant/", "/admin/")
    own = browser_of(member)

    for address in (page, f"{page}0/"):
        assert colleague.get(address).status_code == 404
        assert program.get(address).status_code == 404
        assert Client().get(address).status_code == 302
        assert signed_in().get(address).status_code in (302, 403)
        assert signed_in().get(address.replace("/merchant/", "/admin/")).status_code == 404
        assert own.post(address).status_code == 405
        answer = own.get(address)
        assert "no-store" in answer["Cache-Control"]
        assert "default-src 'none'" in answer["Content-Security-Policy"]
    assert Client().get(admin_page).status_code == 302


def test_who_lost_a_right_gets_no_more_parts(
    sold: Merchant, member: Membership, large: Callable[[], None]
) -> None:
    large()
    clerk = make_staff("audit.export_lists", "orders.view_order")
    staff = signed_in(clerk)
    page, _ = built(staff, STAFF[0])
    assert whole(staff.get(f"{page}0/"))

    clerk.user_permissions.remove(Permission.objects.get(codename="view_order"))

    assert staff.get(f"{page}0/").status_code == 404
    assert staff.get(page).status_code == 404
    PreparedFile.objects.all().delete()
    browser = browser_of(member)
    page, _ = built(browser, STATEMENT)
    assert whole(browser.get(f"{page}0/"))
    row = PreparedFile.objects.select_related("user").get()
    User.objects.filter(pk=member.user.pk).update(is_active=False)
    assert not may_download(PreparedFile.objects.select_related("user").get(pk=row.pk))


def test_rows_that_need_a_right_go_with_it(sold: Merchant, large: Callable[[], None]) -> None:
    """The trail shows bookings only to people who may view the ledger."""
    clerk = make_staff("audit.export_lists", "audit.view_auditentry", "wallets.view_ledgerentry")
    deposit(account=sold.account, amount=Decimal(5))
    large()
    staff = signed_in(clerk)
    page, content = built(staff, "/admin/trail/file/")
    assert AuditAction.DEPOSIT_BOOKED.label.encode() in content

    clerk.user_permissions.remove(Permission.objects.get(codename="view_ledgerentry"))

    assert staff.get(page).status_code == 404
    assert staff.get(f"{page}0/").status_code == 404


def test_what_cannot_be_asked_for_again_fails_at_once(
    sold: Merchant, member: Membership, large: Callable[[], None]
) -> None:
    """Neither the worker nor a page raises an error."""
    key = issue_book_key(account=sold.account, actor=member.user)
    program = Client(headers={"Authorization": f"Bearer {key}", "Prefer": "respond-async"})
    large()
    different = []
    for asker in (program, browser_of(member)):
        for path in ("/merchant/orders/orders.csv?client=999", "/merchant/gone"):
            PreparedFile.objects.all().delete()
            asker.get(STATEMENT)
            row = PreparedFile.objects.get()
            row_name = row_of_file(row.token)
            stored = open_request(row.sealed, row_name) | {"address": path}
            row.sealed = seal(json.dumps(stored).encode(), Context.PREPARED_FILE, row_name)
            row.save()
            build_file(pk=row.pk)
            row.refresh_from_db()
            if (row.state, row.problem, may_download(row)) != (
                FileState.FAILED, prepared_files.REFUSED, False
            ):  # fmt: skip
                different.append((path, row.state))

    PreparedFile.objects.all().delete()
    program.get(STATEMENT)
    revoke_book_key(key=BookKey.objects.get(), actor=member.user)
    build_file(pk=PreparedFile.objects.get().pk)

    assert different == []
    assert not PreparedPart.objects.exists(), "a revoked key asks for nothing"


def test_no_file_is_built_without_its_entry(
    member: Membership, large: Callable[[], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    large()
    for browser, module, path in (
        (browser_of(member), "merchants.frame.exports", STATEMENT),
        (signed_in(), "operators.frame.exports", STAFF[0]),
    ):
        monkeypatch.setattr(f"{module}.record_action", Mock(side_effect=DatabaseError))
        browser.raise_request_exception = False

        assert browser.get(path).status_code == 500

    assert not PreparedFile.objects.exists()


def test_a_right_that_is_lost_before_the_worker_begins_ends_the_file(
    sold: Merchant, large: Callable[[], None]
) -> None:
    large()
    clerk = make_staff("audit.export_lists", "orders.view_order")
    staff = signed_in(clerk)
    page = staff.get(STAFF[0])["Location"]
    clerk.user_permissions.remove(Permission.objects.get(codename="view_order"))

    build_file(pk=PreparedFile.objects.get().pk)

    row = PreparedFile.objects.get()
    assert (row.state, row.problem) == (FileState.FAILED, prepared_files.REFUSED)
    assert not PreparedPart.objects.exists()
    assert "your rights" in staff.get(page).content.decode()


def test_a_filter_that_finds_nothing_for_long_leaves_the_request(
    member: Membership, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No part comes, so only the queries end it."""
    monkeypatch.setattr(downloads, "WHOLE_SECONDS", -1)
    browser = browser_of(member)

    answer = browser.get("/merchant/orders/orders.csv?since=2199-01-01")

    assert answer.status_code == 302
    build_file(pk=PreparedFile.objects.get().pk)
    (line,) = whole(browser.get(f"{answer['Location']}0/")).splitlines()
    assert line.startswith(b"reference")


def test_the_time_ends_before_another_query(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(downloads, "WHOLE_SECONDS", -1)
    ran: list[int] = []

    def parts() -> Generator[bytes]:
        for number in range(3):
            with connection.cursor() as cursor:
                cursor.execute("SELECT 1")
            ran.append(number)
        yield b"a row"

    assert downloads._build(parts()) is None
    assert ran == []


def test_nothing_of_a_file_is_stored_in_clear_text(
    member: Membership, large: Callable[[], None]
) -> None:
    large()
    clerk = signed_in()
    reference = ours(Order)[0].reference
    built(clerk, f"{STAFF[0]}&q={reference}")

    with connection.cursor() as cursor:
        for table in ("merchants_preparedfile", "merchants_preparedpart"):
            cursor.execute(
                f"SELECT string_agg(encode(sealed, 'escape') || one::text, ' ') FROM {table} one"
            )
            (text,) = cursor.fetchone()
            assert reference not in text
            assert "created_at" not in text
    part = PreparedPart.objects.earliest("pk")
    with pytest.raises(CannotOpen):
        open_part(part.sealed, row_of_part(part.token, part.number + 1))
    assert reference.encode() in b"".join(
        open_part(one.sealed, row_of_part(one.token, one.number))
        for one in PreparedPart.objects.order_by("number")
    )


def test_a_large_file_is_built_in_little_memory(member: Membership) -> None:
    book_many(member.account, MANY, apart=timedelta(seconds=5))
    browser = browser_of(member)
    browser.get(STATEMENT, {"since": "2199-01-01"})  # loads what every page needs
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(downloads, "WHOLE_BYTES", 200_000)
        patch.setattr(prepared_files, "PART_BYTES", 200_000)
        page = browser.get(STATEMENT)["Location"]
        reset_queries()
        tracemalloc.start()
        build_file(pk=PreparedFile.objects.get().pk)
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()

    row = PreparedFile.objects.get()
    lines = sum(whole(browser.get(f"{page}{one}/")).count(b"2026-01-0") for one in range(row.parts))
    assert lines >= MANY
    assert row.parts > 2
    assert peak < 2_500_000, peak


def test_each_file_is_recorded_once_and_not_its_search(
    member: Membership, large: Callable[[], None]
) -> None:
    large()
    page, _ = built(browser_of(member), f"{STATEMENT}?kind=purchase")
    browser_of(member).get(page)

    entry = AuditEntry.objects.filter(action=AuditAction.EXPORTED).get()
    assert (entry.reference, entry.note) == ("statement.csv", "kind purchase")
    assert entry.actor == member.user


def test_an_account_waits_for_one_file_at_a_time(
    sold: Merchant, member: Membership, large: Callable[[], None]
) -> None:
    large()
    browser, colleague = browser_of(member), browser_of(make_member(sold.account))
    page = browser.get(STATEMENT)["Location"]

    again = browser.get("/merchant/orders/orders.csv", follow=True)
    other = colleague.get(STATEMENT)

    assert again.redirect_chain[-1][0] == page
    assert "still being built" in again.content.decode()
    assert other.status_code == 429
    assert "is being built" in other.content.decode()
    row = PreparedFile.objects.get()
    build_file(pk=row.pk)
    assert colleague.get(STATEMENT).status_code == 302
    assert browser.get("/merchant/orders/orders.csv")["Location"] == "/merchant/orders/"
    PreparedFile.objects.exclude(pk=row.pk).delete()
    assert browser.get("/merchant/orders/orders.csv")["Location"] != "/merchant/orders/"
    assert not PreparedFile.objects.filter(pk=row.pk).exists(), "it is deleted for another one"
    assert not PreparedPart.objects.exists()


def test_a_program_asks_for_parts(
    sold: Merchant, member: Membership, large: Callable[[], None]
) -> None:
    key = issue_book_key(account=sold.account, actor=member.user)
    program = Client(headers={"Authorization": f"Bearer {key}"})
    expected = whole(program.get(STATEMENT))
    large()

    refused = program.get(STATEMENT)
    assert refused.status_code == 413
    assert "Choose fewer days" in refused.json()["message"]
    assert not PreparedFile.objects.exists()
    asked = program.get(STATEMENT, headers={"Prefer": "wait=5, Respond-Async"})
    assert asked.status_code == 202
    address = asked.json()["file"]
    assert program.get(address).status_code == 202
    busy = program.get(STATEMENT, headers={"Prefer": "respond-async"})
    assert (busy.status_code, busy["Retry-After"]) == (429, "60")
    build_file(pk=PreparedFile.objects.get().pk)
    found = program.get(address)
    assert found.status_code == 200
    parts = range(found.json()["parts"])
    assert b"".join(whole(program.get(f"{address}{one}/")) for one in parts) == expected
    assert browser_of(member).get(address).status_code == 404

    PreparedFile.objects.update(state=FileState.FAILED, problem=prepared_files.TOO_LARGE)
    failed = program.get(address)
    assert (failed.status_code, failed.json()["message"]) == (410, prepared_files.TOO_LARGE)
    revoke_book_key(key=BookKey.objects.get(), actor=member.user)
    assert program.get(address).status_code == 401


def test_a_file_that_is_too_large_leaves_nothing(
    member: Membership, large: Callable[[], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    large()
    monkeypatch.setattr(prepared_files, "MAX_PARTS", 1)
    page = browser_of(member).get(STATEMENT)["Location"]

    build_file(pk=PreparedFile.objects.get().pk)

    assert PreparedFile.objects.get().problem == prepared_files.TOO_LARGE
    assert not PreparedPart.objects.exists()
    assert "fewer days" in browser_of(member).get(page).content.decode()


def test_a_sweep_continues_what_was_lost_and_deletes_what_is_old(
    member: Membership, large: Callable[[], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    queued: list[int] = []
    monkeypatch.setattr(prepared_files, "_queue", queued.append)
    large()
    browser_of(member).get(STATEMENT)
    files = PreparedFile.objects.all()
    pk = files.get().pk
    assert queued == [pk]

    def age(**values: Any) -> None:
        files.update(touched_at=timezone.now() - timedelta(minutes=6), **values)

    assert sweep_files() == {"again": 0, "failed": 0, "deleted": 0}
    age()
    assert sweep_files()["again"] == 1, "its message was lost"
    age(state=FileState.BUILDING, attempts=1)
    assert sweep_files()["again"] == 1, "its worker died"
    assert files.get().state == FileState.WAITING
    age(state=FileState.BUILDING, attempts=2)
    assert sweep_files() == {"again": 0, "failed": 1, "deleted": 0}
    assert files.get().problem == prepared_files.UNFINISHED
    files.update(state=FileState.WAITING)
    build_file(pk=pk)
    files.update(created_at=timezone.now() - timedelta(hours=25))
    assert sweep_files()["deleted"] > 1
    assert not PreparedPart.objects.exists()


def test_two_workers_do_not_mix_the_parts_of_a_file(
    member: Membership, large: Callable[[], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A worker that was taken for dead goes on after another one has begun."""
    large()
    monkeypatch.setattr(prepared_files, "REPORT_SECONDS", 0)
    browser_of(member).get("/merchant/orders/orders.csv")
    row = PreparedFile.objects.get()
    build_file(pk=row.pk)
    build_file(pk=row.pk)
    built_once = PreparedFile.objects.get()
    assert (built_once.state, built_once.attempts) == (FileState.READY, 1)
    PreparedFile.objects.update(state=FileState.WAITING)
    seal_part = prepared_files.seal_part

    def take_over(content: bytes, bound: bytes) -> bytes:
        PreparedFile.objects.update(attempts=9)
        return seal_part(content, bound)

    monkeypatch.setattr(prepared_files, "seal_part", take_over)
    build_file(pk=row.pk)

    assert PreparedFile.objects.get().state == FileState.BUILDING
    build_file(pk=row.pk)
    assert PreparedFile.objects.get().attempts == 9, "it is not begun twice"


def test_who_asked_for_a_file_cancels_it_until_it_is_built(
    sold: Merchant, member: Membership, large: Callable[[], None]
) -> None:
    large()
    browser, colleague = browser_of(member), browser_of(make_member(sold.account))
    page = browser.get(STATEMENT)["Location"]
    assert 'data-cancel><input type="hidden"' in browser.get(page).content.decode()

    assert colleague.post(f"{page}cancel/").status_code == 404
    assert browser.get(f"{page}cancel/").status_code == 405
    assert PreparedFile.objects.exists()
    answer = browser.post(f"{page}cancel/", follow=True)

    assert answer.redirect_chain == [("/merchant/", 302)]
    assert "The file was cancelled." in answer.content.decode()
    assert not PreparedFile.objects.exists()
    page = browser.get(STATEMENT)["Location"]
    build_file(pk=PreparedFile.objects.get().pk)
    assert browser.post(f"{page}cancel/")["Location"] == page
    assert PreparedFile.objects.get().state == FileState.READY
    assert "data-cancel hidden" in browser.get(page).content.decode()


def test_staff_cancel_only_their_own_files(sold: Merchant, large: Callable[[], None]) -> None:
    large()
    browser, other = signed_in(), signed_in()
    page = browser.get(STAFF[0])["Location"]

    assert other.post(f"{page}cancel/").status_code == 404
    assert PreparedFile.objects.exists()
    answer = browser.post(f"{page}cancel/", follow=True)

    assert answer.redirect_chain == [("/admin/", 302)]
    assert "The file was cancelled." in answer.content.decode()
    assert not PreparedFile.objects.exists()


def test_a_worker_stops_when_its_file_is_cancelled(
    member: Membership, large: Callable[[], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    large()
    browser = browser_of(member)
    page = browser.get("/merchant/orders/orders.csv")["Location"]
    seal_part, sealed = prepared_files.seal_part, []

    def cancel_at_the_second(content: bytes, bound: bytes) -> bytes:
        sealed.append(bound)
        if len(sealed) == 2:
            browser.post(f"{page}cancel/")
        return seal_part(content, bound)

    monkeypatch.setattr(prepared_files, "seal_part", cancel_at_the_second)
    build_file(pk=PreparedFile.objects.get().pk)

    assert len(sealed) == 2
    assert not PreparedFile.objects.exists()
    assert not PreparedPart.objects.exists()


def test_a_worker_has_nothing_to_do_if_its_file_is_cancelled_as_it_begins(
    member: Membership, large: Callable[[], None]
) -> None:
    large()
    browser_of(member).get("/merchant/orders/orders.csv")
    row = PreparedFile.objects.get()
    cancelled: list[bool] = []

    def cancel_after_the_first(execute: Callable[..., Any], *arguments: Any) -> Any:
        result = execute(*arguments)
        if not cancelled:
            cancelled.append(True)
            cancelled.append(cancel_file(row))
        return result

    with connection.execute_wrapper(cancel_after_the_first):
        build_file(pk=row.pk)

    assert cancelled == [True, True]
    assert not PreparedFile.objects.exists()
