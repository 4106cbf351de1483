"""The first page shows the changes of colleagues that a person may agree to, with links."""

from __future__ import annotations

import html
import re
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.urls import reverse
from django.utils import timezone

from accounts.models import Account, Preferences
from audit.models import AuditAction, AuditEntry
from catalogue.models import PriceList, Shelf
from core.backoffice.staff_roles import StaffRole
from operators.imports.asked_changes import PRICE, describe, place_of
from operators.imports.low_prices import LENGTH, _shorten
from operators.sign_in.models import TwoPersonChange
from operators.sign_in.second_person import ask_or_agree, end_change
from tests.factories import make_account, make_batch, make_product, make_topup_product, own_shelf
from tests.operators.back_office import signed_in, staff_with, url
from tests.operators.catalogue.test_low_prices import on_prices_page, on_product_page, on_shelf_page
from tests.operators.pages.test_pages_are_audited import hidden

pytestmark = pytest.mark.django_db


def keeper() -> User:
    return staff_with(StaffRole.STOCK_KEEPER)


def text_of(answer: Any) -> str:
    return html.unescape(" ".join(re.sub(r"<[^>]*>", "", answer.content.decode()).split()))


def lines_of(person: User) -> dict[str, str]:
    """The lines about changes on the first page of a person: words and addresses."""
    page = signed_in(person).get("/admin/").content.decode()
    links = re.findall(r'<a class="text-link" href="([^"]*)">([^<]*asks for[^<]*)</a>', page)
    return {html.unescape(words): html.unescape(address) for address, words in links}


def test_a_low_price_is_on_the_first_page_of_people_who_may_agree() -> None:
    first, second = keeper(), keeper()
    shelf = own_shelf(make_product(name="Gems & 100", price="2.50"))
    on_prices_page(first, shelf, "0.01")

    words = f"{first} asks for: Gems & 100: 0.01 USD instead of 2.50 USD"
    ((found, address),) = lines_of(second).items()
    assert found == words
    assert not lines_of(first)
    assert f"You asked a second person for: {words.partition(': ')[2]}" in text_of(
        signed_in(first).get("/admin/")
    )
    assert not lines_of(staff_with(StaffRole.SUPPORT))
    agreeing = text_of(signed_in(second).get(address))
    assert f"{first} asked for these prices." in agreeing
    assert "Gems & 100 2.50 USD 0.01 USD" in " ".join(agreeing.split())

    on_prices_page(second, shelf, "0.01")
    assert Shelf.objects.get(pk=shelf.pk).price == Decimal("0.01")
    assert not lines_of(second)


def ask_many(first: User, number: int, **more: str) -> tuple[list[Shelf], str, Any]:
    """Asks for 90 % less for many shelves. Returns them, the address, and the answer."""
    rows = [own_shelf(make_product(name=f"A long name {n:02}", price="9")) for n in range(number)]
    query = "&".join(f"row={row.pk}" for row in rows)
    address, browser = f"{reverse('admin:catalogue_shelf_new_prices')}?{query}", signed_in(first)
    typed = hidden(browser.get(address)) | {"change": "percent", "percent": "-90"} | more
    typed |= {f"price-{row.pk}": "9.00" for row in rows}
    answer = browser.post(address, hidden(browser.post(address, typed)) | {"confirmed": "1"})
    return rows, address, answer


def test_prices_that_wait_are_no_error_and_are_all_in_the_table() -> None:
    _rows, _address, answer = ask_many(keeper(), 12)
    page = answer.content.decode()

    assert "Another person must agree." in text_of(answer)
    assert "Please correct" not in page
    assert "errornote" not in page
    assert page.count("0.90 USD") == 12
    assert 'name="confirmed"' not in page


def test_a_low_price_in_a_list_names_its_list_and_its_terms() -> None:
    first, second = keeper(), keeper()
    partners = PriceList.objects.create(name="Partners", currency="USD")
    Account.objects.filter(pk=make_account().pk).update(price_list_id=partners.pk)
    shelf = own_shelf(make_product(name="Gems 100", price="2.50"))
    address = f"{url(partners, 'set_prices')}?row=shelf-{shelf.pk}"
    browser = signed_in(first)
    asked = browser.post(address, {"terms": "percent", "value": "80"})
    answer = browser.post(address, hidden(asked))

    change = "Gems 100, list Partners: 0.50 USD instead of 2.50 USD"
    assert "Another person must agree." in text_of(answer)
    assert "0.50 USD" in answer.content.decode()
    assert "errornote" not in answer.content.decode()
    filled = f"{address}&asked={TwoPersonChange.objects.get().pk}"
    assert lines_of(second) == {f"{first} asks for: {change}, 80.00 % off": filled}

    # The second person sees the same at once, and confirms it.
    browser = signed_in(second)
    preview = browser.get(filled)
    assert "0.50 USD" in preview.content.decode()
    assert browser.post(filled, hidden(preview)).status_code == 302
    assert partners.entries.get().percent_off == 80


def test_many_low_prices_name_the_first_ones() -> None:
    first, second = keeper(), keeper()
    rows = [own_shelf(make_product(name=f"A long name {n:02}", price="9")) for n in range(12)]
    query = "&".join(f"row={row.pk}" for row in rows)
    address, browser = f"{reverse('admin:catalogue_shelf_new_prices')}?{query}", signed_in(first)
    typed = hidden(browser.get(address)) | {"change": "percent", "percent": "-90"}
    typed |= {f"price-{row.pk}": "9.00" for row in rows}
    browser.post(address, hidden(browser.post(address, typed)) | {"confirmed": "1"})

    change = TwoPersonChange.objects.get()
    assert len(change.what) <= 500
    ((words, address),) = lines_of(second).items()
    assert address == f"{reverse('admin:catalogue_shelf_new_prices')}?{query}&asked={change.pk}"
    assert "A long name 00: 0.90 USD instead of 9.00 USD; " in words
    named = len(PRICE.findall(change.what))
    assert words.endswith("; 9 more")
    assert f"; and {12 - named} more, " in change.what


def test_each_change_has_words_and_a_place() -> None:
    account, batch = make_account(), make_batch(own_shelf(make_product(name="Gems")))
    gold = PriceList.objects.create(name="Gold", currency="USD")
    game = make_topup_product(name="Game")
    low = f"Game (topupproduct {game.pk}): 1.00 USD instead of 9.00 USD"
    start = datetime(2026, 12, 24, 12, tzinfo=UTC)
    for what, words, permission in (
        (f"prices: {low}", "Game: 1.00 USD instead of 9.00 USD", "topups.change_topupproduct"),
        (
            f"prices: {low} from {start:%Y-%m-%d %H:%M:%S} UTC",
            f"Game: 1.00 USD instead of 9.00 USD from {start:%Y-%m-%d}",
            "topups.change_topupproduct",
        ),
        (
            f"price list {gold.pk} in place of None for account {account.pk}: {low}",
            f"{account} gets Gold: Game: 1.00 USD",
            "catalogue.assign_pricelist",
        ),
        (f"the end of price list entry 7: {low}", "Game", "catalogue.change_pricelistentry"),
        (
            f"cost of batch {batch.pk}: 1.00 USD, not 2.00 USD",
            f"the cost of batch {batch.pk}",
            "catalogue.change_batch",
        ),
        ("exchange rates: USD to EUR", "exchange rates: USD", "figures.change_exchangerate"),
        ("own company: Acme", "own company: Acme", "accounts.change_owncompany"),
        ("limit new: USD 5", "limit new: USD 5", "wallets.change_bookinglimit"),
    ):
        text = re.sub(r"<[^>]*>", "", describe(what))
        assert words in text, what
        place = place_of(what)
        assert place is not None, what
        assert place.permission == permission
        assert place.url.startswith("/admin/")


def test_a_regular_price_that_is_low_in_a_list_leads_to_the_regular_price() -> None:
    low = "Gems (shelf 4, price list 1): 1.00 USD instead of 9.00"
    regular, listed = place_of(f"prices: {low}"), place_of(f"target 12 of price list 1: {low}")
    assert regular
    assert regular.url == f"{reverse('admin:catalogue_shelf_new_prices')}?row=4"
    assert listed
    assert listed.permission == "catalogue.change_pricelistentry"


@pytest.mark.parametrize("fake", ["1..2 USD instead of 9", "1.00 USD instead of 9.00"])
def test_texts_that_people_type_have_no_prices(fake: str) -> None:
    for beginning in (
        "own company: Acme",
        "bank details for USD: IBAN",
        "limit new: role",
        "role 1: ",
    ):
        assert f"(shelf 1): {fake} <" in html.unescape(describe(f"{beginning} (shelf 1): {fake} <"))


def test_new_bank_details_are_on_the_first_page_of_other_administrators() -> None:
    first, second = (staff_with(StaffRole.ADMINISTRATOR) for _ in range(2))
    data = {"currency": "USD", "details": "IBAN DE00"}
    answer = signed_in(first).post(reverse("admin:wallets_bankdetails_add"), data)
    assert "Not saved yet" in answer.content.decode()

    ((words, address),) = lines_of(second).items()

    assert words.startswith(f"{first} asks for: bank details for USD: IBAN DE00")
    assert signed_in(second).get(address).status_code == 200


def test_a_list_until_the_last_day_of_the_calendar_has_a_line() -> None:
    terms = "target 44 of price list 1: True None 80.00, from now until 9999-12-31 23:59:59+00:00"
    low = "Gems (shelf 5, price list 1): 1.80 USD instead of 9.00"
    with timezone.override("Europe/Berlin"):  # the time there has a year of five digits
        assert "until 9999-12-31 23:59:59" in describe(f"{terms}: {low}")


def test_many_prices_of_a_list_lead_to_the_list() -> None:
    gold = PriceList.objects.create(name="Gold", currency="USD")
    low = f"Gems (shelf 4, price list {gold.pk}): 1.00 USD instead of 9.00"
    place = place_of(f"target 12 of price list {gold.pk}: {low}; and 7 more, {'0' * 32}")
    assert place
    assert place.url == url(gold)


def test_a_change_of_an_import_has_only_the_line_of_the_import() -> None:
    assert place_of("codes of import 7: Gems (shelf 1): 1.00 USD, and a code costs 2.00") is None
    assert place_of("price lists of file 0123: Gems (shelf 1): 1.00 USD instead of 9.00") is None


@pytest.mark.parametrize(
    "fake",
    [
        "(shelf 1): 9.00 USD instead of 9.10; " * 3,
        "(shelf 1): 1..2 USD instead of 9",
        "(shelf 1):  9 USD instead of 9; and 70 more",
        "target 1 of price list 2: True x 50, from now until its end; ",
    ],
)
def test_the_name_of_a_product_is_no_part_of_the_words(fake: str) -> None:
    first, second = keeper(), keeper()
    shelf = own_shelf(make_product(name=f"and 7 more {fake}", price="9.00"))
    other = own_shelf(make_product(name="Other", price="9.00"))
    rows = [other, shelf]
    query = "&".join(f"row={row.pk}" for row in rows)
    address, browser = f"{reverse('admin:catalogue_shelf_new_prices')}?{query}", signed_in(first)
    typed = hidden(browser.get(address)) | {"change": "percent", "percent": "-90"}
    typed |= {f"price-{row.pk}": "9.00" for row in rows}
    browser.post(address, hidden(browser.post(address, typed)) | {"confirmed": "1"})

    ((words, found),) = lines_of(second).items()
    change = "0.90 USD instead of 9.00 USD"
    assert words == f"{first} asks for: {shelf}: {change}; Other: {change}"
    assert sorted(re.findall(r"row=(\d+)", found)) == sorted(str(row.pk) for row in rows)


def test_the_terms_of_many_low_prices_are_whole() -> None:
    start, end = datetime(2026, 12, 1, tzinfo=UTC), datetime(2026, 12, 31, 23, 59, tzinfo=UTC)
    low = [f"Gems (shelf {pk}, price list 1): 1.00 USD instead of 9.00" for pk in range(90)]
    for digits in range(18):
        terms = f"target {10**digits} of price list 1: True 5.0 None, from {start} until {end}"
        about = "; ".join([terms] * 9)
        what = _shorten(f"{about}: {'; '.join(low)}", about, low)
        assert len(what) <= LENGTH
        words = re.sub(r"<[^>]*>", "", describe(what))
        assert words.endswith("more, from 2026-12-01 00:00:00, until 2026-12-31 23:59:00"), digits


def test_an_old_request_has_no_line() -> None:
    shelf, first = own_shelf(make_product()), keeper()
    what = f"prices: {shelf} (shelf {shelf.pk}): 1.00 USD instead of 9.00 USD"
    ask_or_agree(what=what, about=None, actor=first)
    TwoPersonChange.objects.update(asked_at=timezone.now() - timedelta(days=2))
    assert not lines_of(keeper())


def end(person: User, change: TwoPersonChange, **typed: str) -> Any:
    return signed_in(person).post(reverse("end_request", args=[change.pk]), typed)


@pytest.mark.parametrize(
    ("own", "link", "done"), [(True, "Withdraw", "Withdrawn"), (False, "Reject", "Rejected")]
)
def test_the_asker_withdraws_and_another_one_rejects(own: bool, link: str, done: str) -> None:
    first, second, third = keeper(), keeper(), keeper()
    shelf = own_shelf(make_product(name="Gems", price="2.50"))
    on_prices_page(first, shelf, "0.01")
    change = TwoPersonChange.objects.get()
    person, address = first if own else second, reverse("end_request", args=[change.pk])
    page = signed_in(person).get("/admin/").content.decode()
    assert f'<a class="text-link" href="{address}">{link}…</a>' in page
    assert "Gems: 0.01 USD instead of 2.50 USD" in text_of(signed_in(person).get(address))
    assert end(staff_with(StaffRole.SUPPORT), change).status_code == 403

    assert end(person, change, note="typed wrong").status_code == 302

    entry = AuditEntry.objects.filter(note__contains=f"{done}: ").get()
    assert (entry.actor, entry.object_id) == (person, str(first.pk))
    assert entry.note.startswith(f"typed wrong. {done}: prices: Gems")
    assert not lines_of(third)
    assert end(person, change).status_code == 404
    on_prices_page(third, shelf, "0.01")  # what was ended counts no more: this is a new question
    assert Shelf.objects.get(pk=shelf.pk).price == Decimal("2.50")
    on_prices_page(first, shelf, "0.01")
    assert Shelf.objects.get(pk=shelf.pk).price == Decimal("0.01")


def test_nobody_ends_what_was_agreed() -> None:
    first, second = keeper(), keeper()
    shelf = own_shelf(make_product(price="2.50"))
    for person in (first, second):
        on_prices_page(person, shelf, "0.01")
    change = TwoPersonChange.objects.get()
    assert end(first, change).status_code == 404
    assert not end_change(change, actor=first)
    change.refresh_from_db()
    assert change.approved_by == second


def test_a_second_person_with_another_price_is_told_of_the_first_request() -> None:
    first, second = keeper(), keeper()
    shelf, other = (own_shelf(make_product(name=name, price="2.50")) for name in ("Gems", "Gold"))
    on_prices_page(first, shelf, "0.01")

    assert "has already asked" not in text_of(on_prices_page(second, other, "0.02"))
    told = text_of(on_prices_page(second, shelf, "0.02"))
    words = "Gems: 0.01 USD instead of 2.50 USD. You asked for something else. Reject…"
    assert f"{first} has already asked for: {words}" in told


def test_the_link_of_a_request_shows_all_its_prices_and_agrees_to_them() -> None:
    first, second = keeper(), keeper()
    start = (timezone.now() + timedelta(days=3)).replace(microsecond=0)
    rows, _address, _answer = ask_many(first, 12, starts_at=f"{start:%Y-%m-%dT%H:%M:%S}")
    ((_words, asked),) = lines_of(second).items()

    # The time that was typed stays that of the first person's time zone.
    Preferences.objects.create(user=second, time_zone="Asia/Tokyo")
    browser = signed_in(second)
    preview = browser.get(asked)
    assert preview.content.decode().count("0.90 USD") == 12
    assert f"{first} asked for these prices." in text_of(preview)
    assert not Shelf.objects.exclude(next_price=None).exists()
    # Nobody agrees to their own request.
    own = signed_in(first)
    assert "Another person must agree." in text_of(
        own.post(asked, hidden(own.get(asked)) | {"confirmed": "1"})
    )

    assert browser.post(asked, hidden(preview) | {"confirmed": "1"}).status_code == 302
    prices = set(
        Shelf.objects.filter(pk__in=[row.pk for row in rows]).values_list(
            "next_price", "next_price_from"
        )
    )
    assert prices == {(Decimal("0.90"), start)}
    assert TwoPersonChange.objects.get().approved_by == second
    assert "New price" in text_of(browser.get(asked))  # the request is done: the form is empty


def test_a_filled_form_with_another_value_is_another_request() -> None:
    first, second = keeper(), keeper()
    (shelf,), _address, _answer = ask_many(first, 1)
    ((_words, asked),) = lines_of(second).items()
    browser = signed_in(second)
    typed = hidden(browser.get(asked)) | {"percent": "-91"}
    answer = browser.post(asked, hidden(browser.post(asked, typed)) | {"confirmed": "1"})

    assert "Another person must agree." in text_of(answer)
    assert Shelf.objects.get(pk=shelf.pk).price == 9
    assert not TwoPersonChange.objects.exclude(approved_by=None).exists()


def test_only_people_with_the_right_open_a_filled_form() -> None:
    ask_many(keeper(), 1)
    change = TwoPersonChange.objects.get()
    asked = f"{change.form['url']}&asked={change.pk}"
    assert signed_in(staff_with(StaffRole.SUPPORT)).get(asked).status_code == 403


@pytest.mark.parametrize("change", [on_prices_page, on_shelf_page, on_product_page])
def test_the_audit_entry_of_a_low_price_names_who_asked(change: Any) -> None:
    first, second = keeper(), keeper()
    shelf = own_shelf(make_product(name="Gems", price="2.50"))
    for person in (first, second):
        change(person, shelf, "0.01")
    note = f"Asked by {first}, confirmed by {second}"
    entries = AuditEntry.objects.filter(
        object_type="catalogue.shelf", object_id=str(shelf.pk), action=AuditAction.PRICE_CHANGED
    )
    entry = entries.latest("pk")
    assert (entry.note, entry.actor) == (note, second)
    history = text_of(signed_in(second).get(url(shelf)))
    assert history.count(f"{second}, asked by {first}") == history.count("asked by") == 1

    change(second, shelf, "0.02")  # a rise: it needs nobody else
    assert entries.latest("pk").note == ""


def test_the_audit_entry_of_a_request_has_no_digest() -> None:
    ask_many(keeper(), 12)
    entry = AuditEntry.objects.get(note__startswith="Waits for another: prices: A long name 00")
    assert re.search(r"; and \d+ more\Z", entry.note)
