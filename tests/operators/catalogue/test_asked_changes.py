"""The first page shows the changes of colleagues that a person may agree to, with links."""

from __future__ import annotations

import html
import re
from datetime import timedelta
from decimal import Decimal
from typing import Any

import pytest
from django.contrib.auth.models import Group, User
from django.urls import reverse
from django.utils import timezone

from accounts.models import Account, Preferences
from audit.models import AuditAction, AuditEntry
from catalogue.models import Batch, PriceList, Shelf
from catalogue.price_lists import Target, Terms, add_price_entry
from core.backoffice.staff_roles import StaffRole
from operators.imports.low_prices import LENGTH, _what
from operators.sign_in.asked_changes import describe
from operators.sign_in.models import TwoPersonChange
from operators.sign_in.second_person import ask_or_agree, end_change
from operators.staff.roles import name_of_right, staff_rights
from tests.factories import (
    make_account,
    make_batch,
    make_client,
    make_product,
    make_topup_product,
    make_variation,
    own_shelf,
)
from tests.operators.back_office import form_of, make_staff, signed_in, staff_with, url
from tests.operators.catalogue.test_low_prices import (
    by_file,
    on_prices_page,
    on_product_page,
    on_shelf_page,
)
from tests.operators.pages.test_pages_are_audited import hidden

pytestmark = pytest.mark.django_db
SHELF = "catalogue.change_shelf"


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


def test_a_nul_in_a_form_is_not_kept() -> None:
    second = keeper()
    rows, _address, answer = ask_many(keeper(), 1, extra="\0")

    assert answer.status_code == 200
    ((_words, address),) = lines_of(second).items()
    assert "0.90 USD" in signed_in(second).get(address).text
    assert "extra" not in TwoPersonChange.objects.get().data["typed"]
    assert Shelf.objects.get(pk=rows[0].pk).price == 9


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
    history = text_of(signed_in(staff_with(StaffRole.STOCK_KEEPER)).get(url(partners)))
    assert f"Asked by {first}, confirmed by {second}" in history


def test_the_timeline_of_a_list_shows_requests_and_the_price_before() -> None:
    first, second = keeper(), keeper()
    partners = PriceList.objects.create(name="Partners", currency="USD")
    Account.objects.filter(pk=make_account().pk).update(price_list_id=partners.pk)
    shelf = own_shelf(make_product(name="Gems & Co", price="2.50"))
    terms = Terms(percent_off=Decimal(4))
    add_price_entry(price_list_id=partners.pk, target=Target(), terms=terms, actor="shell:anna")
    address = f"{url(partners, 'set_prices')}?row=shelf-{shelf.pk}"

    def ask(person: User) -> None:
        asked = signed_in(person).post(address, {"terms": "fixed", "value": "0.50"})
        signed_in(person).post(address, hidden(asked))

    ask(first)
    end(first, TwoPersonChange.objects.get(), note="too low")
    ask(first)
    ask(second)

    change = "Gems & Co, list Partners: 0.50 USD instead of 2.40 USD"
    for reader in (second, make_staff(superuser=True)):
        history = text_of(signed_in(reader).get(url(partners)))
        assert history.count(f"Waits for another: {change}") == 2
        assert f"too low. Withdrawn: {change}" in history
        assert f"Asked by {first}: {change}" in history
        assert "price: 2.40 → 0.50" in history
        assert "regular price" not in history
    # A request may hold the cost of codes.
    manager = signed_in(staff_with(StaffRole.MERCHANT_MANAGER))
    assert "Second person asked" not in text_of(manager.get(url(partners)))
    entry = AuditEntry.objects.filter(action="request_ended").get()
    assert change in text_of(signed_in(make_staff(superuser=True)).get(url(entry)))


def test_the_first_price_in_a_list_names_the_regular_one_apart() -> None:
    partners = PriceList.objects.create(name="Partners", currency="USD")
    shelf = own_shelf(make_product(name="Gems", price="9.59"))
    target, terms = Target(shelf_id=shelf.pk), Terms(price=Decimal("9.49"))
    add_price_entry(price_list_id=partners.pk, target=target, terms=terms, actor="shell:anna")

    history = text_of(signed_in(keeper()).get(url(partners)))
    assert "regular price: 9.59" in history
    assert "price: 9.49" in history
    assert "9.59 → 9.49" not in history


def test_a_request_says_who_received_it_and_names_the_product_of_each_price() -> None:
    first, second = keeper(), keeper()
    partners = PriceList.objects.create(name="Partners", currency="USD")
    account = make_account()
    Account.objects.filter(pk=account.pk).update(price_list_id=partners.pk)
    gems, coins = (own_shelf(make_product(name=name, price="2.50")) for name in ("Gems", "Coins"))
    address = f"{url(partners, 'set_prices')}?row=shelf-{gems.pk}&row=shelf-{coins.pk}"
    typed = {f"terms-shelf-{gems.pk}": "fixed", f"value-shelf-{gems.pk}": "0.50"}
    typed |= {f"terms-shelf-{coins.pk}": "percent", f"value-shelf-{coins.pk}": "6"}
    browser = signed_in(first)
    answer = browser.post(address, hidden(browser.post(address, typed)))

    change = TwoPersonChange.objects.get()
    assert f"Sent to {second}. Withdraw…" in text_of(answer)
    assert f'href="{reverse("end_request", args=[change.pk])}"' in answer.content.decode()
    assert ">Cancel<" not in answer.content.decode()
    price = "Gems, list Partners: 0.50 USD instead of 2.50 USD"
    assert list(lines_of(second)) == [f"{first} asks for: {price}; Coins: 6.00 % off"]


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
    assert words.endswith("; 9 more")
    assert re.search(r"… \(12 in all\), [0-9a-f]{32}\Z", change.what)
    assert len(change.data["prices"]) == 12


def ask_by_pages(first: User, address: str, **typed: str) -> None:
    """Asks for a change on its page, and confirms the preview."""
    browser = signed_in(first)
    is_form = address.endswith(("/change/", "/add/"))
    fields = form_of(browser, address) if is_form else hidden(browser.get(address))
    asked = browser.post(address, fields | typed)
    if not is_form and asked.status_code == 200:
        browser.post(address, typed | hidden(asked) | {"confirmed": "1"})


def test_each_request_has_words_and_leads_to_its_page() -> None:
    account, batch = make_account(), make_batch(own_shelf(make_product(name="Gems", price="9.00")))
    Batch.objects.update(unit_cost=2, cost_currency="USD")
    gold = PriceList.objects.create(name="Gold", currency="USD")
    boss, game = make_staff(superuser=True), make_topup_product(name="Game", price="9.00")
    entry = add_price_entry(
        price_list_id=gold.pk,
        target=Target(shelf_id=batch.shelf_id),
        terms=Terms(price=Decimal("0.50")),
        actor=boss,
    )
    client = make_client(account)
    role = Group.objects.create(name="Helpers")
    make_staff().groups.add(role)
    (right,) = [one for one in staff_rights() if "wallets.move_money" in one.permissions]
    begins = "2026-12-24T12:00"
    first, second = make_staff(), make_staff()
    for person in (first, second):
        person.groups.set(Group.objects.filter(name__in=[one.value for one in StaffRole]))
    address = f"{reverse('admin:topups_topupproduct_new_prices')}?row={game.pk}"
    for asked, typed, words in (
        (
            address,
            {"change": "prices", f"price-{game.pk}": "1.00", "starts_at": begins},
            "Game: 1.00 USD instead of 9.00 USD from 2026-12-24",
        ),
        (
            url(account, "choose_list"),
            {"price_list": str(gold.pk)},
            f"{account} gets Gold: Gems, list Gold: 0.50 USD",
        ),
        (url(batch), {"unit_cost": "1.00"}, f"the cost of batch {batch.pk}: 1.00 USD instead of"),
        (url(client, "issue"), {}, f"{client}: create a key"),
        (url(role), {"rights": name_of_right(right)}, f"Helpers: {right.words}"),
        (
            reverse("admin:wallets_bookinglimit_add"),
            {"group": str(role.pk), "kind": "payout", "amount": "5", "currency": "USD"},
            "limit new: ",
        ),
        ("/admin/accounts/owncompany/1/change/", {"legal_name": "We"}, "own company: legal name"),
    ):
        ask_by_pages(first, asked, **typed)
        ((found, address),) = lines_of(second).items()
        assert found.startswith(f"{first} asks for: {words}"), found
        assert re.sub(r"[?&]asked=\d+\Z", "", address) == asked
        shown = text_of(signed_in(second).get(address))
        assert f"{first} asked for" in shown, shown
        TwoPersonChange.objects.update(ended_at=timezone.now())
    assert Account.objects.get(pk=account.pk).price_list_id is None
    assert entry.valid_until is None


def low(name: str, pk: int, **more: Any) -> dict[str, Any]:
    price = {"kind": "shelf", "pk": pk, "list": None, "new": "1.00", "currency": "USD", "step": 1}
    return price | {"words": name, "old": "9.00", "was": "USD", "start": None} | more


def test_new_bank_details_are_on_the_first_page_of_other_administrators() -> None:
    first, second = (staff_with(StaffRole.ADMINISTRATOR) for _ in range(2))
    data = {"currency": "USD", "details": "IBAN DE00"}
    address = reverse("admin:wallets_bankdetails_add")
    answer = signed_in(first).post(address, data, follow=True)
    assert "Not saved yet" in answer.content.decode()

    ((words, address),) = lines_of(second).items()

    assert words.startswith(f"{first} asks for: bank details for USD: IBAN DE00")
    assert signed_in(second).get(address).status_code == 200


def test_a_list_until_the_last_day_of_the_calendar_has_a_line() -> None:
    terms = {"percents": ["80.00"], "start": "", "end": "9999-12-31T23:59:59+00:00"}
    data = {"prices": [low("Gems", 5, list=1)], "number": 1, "terms": terms}
    with timezone.override("Europe/Berlin"):  # the time there has a year of five digits
        assert "until 9999-12-31 23:59:59" in describe(TwoPersonChange(data=data))


def test_a_change_of_an_import_has_only_the_line_of_the_import() -> None:
    first, second = keeper(), keeper()
    by_file(first, own_shelf(make_product(price="2.50")), "0.01")
    change = TwoPersonChange.objects.get()
    assert not lines_of(second)
    assert signed_in(second).get(reverse("end_request", args=[change.pk])).status_code == 404


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
    prices = [low("Gems", pk, list=1) for pk in range(90)]
    terms = {
        "percents": [],
        "start": "2026-12-01T00:00:00+00:00",
        "end": "2026-12-31T23:59:00+00:00",
    }
    data = {"prices": prices, "number": 190, "terms": terms}
    words = re.sub(r"<[^>]*>", "", describe(TwoPersonChange(data=data)))
    assert words.endswith("187 more, from 2026-12-01 00:00:00, until 2026-12-31 23:59:00")


@pytest.mark.parametrize("number", [1, 90])
def test_a_request_fits_its_column(number: int) -> None:
    words = [f"Gems {pk}: 1.00 USD instead of 9.00" for pk in range(number)]
    what = _what("target 12 of price list 1; " * 9, words)
    assert len(what) <= LENGTH
    assert what != _what("target 12 of price list 1; " * 9, [*words[:-1], "other"])


def test_an_old_request_has_no_line() -> None:
    shelf, first = own_shelf(make_product(price="9.00")), keeper()
    on_prices_page(first, shelf, "0.01")
    TwoPersonChange.objects.update(asked_at=timezone.now() - timedelta(days=2))
    assert not lines_of(keeper())


def test_nobody_misses_a_request_because_of_many_others() -> None:
    first, second = keeper(), keeper()
    on_prices_page(first, own_shelf(make_product(name="Gems", price="9.00")), "0.01")
    many = [
        TwoPersonChange(what=f"{right} {n}", asked_by=asker, right=right, data={"url": "/admin/"})
        for n in range(60)
        for asker, right in ((first, "wallets.change_bookinglimit"), (second, SHELF))
    ]
    TwoPersonChange.objects.bulk_create(many)
    TwoPersonChange.objects.filter(what__startswith="prices").update(id=10**9)  # the newest

    assert any("Gems" in line for line in lines_of(second))
    assert len(lines_of(first)) == 50
    assert "Gems" in text_of(signed_in(first).get("/admin/"))  # the own ones count apart


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
    assert (entry.actor, entry.object_type) == (person, "catalogue.shelf")
    assert entry.object_id == str(shelf.pk)
    assert entry.note.startswith(f"typed wrong. {done}: prices: Gems")
    assert not lines_of(third)
    ended = "rejected" if not own else "ended"
    assert entry.action_label == f"Request for a second person {ended}"
    told = f"{second} rejected your request: Gems: 0.01 USD instead of 2.50 USD. typed wrong"
    assert (told in text_of(signed_in(first).get("/admin/"))) is not own
    assert "rejected your request" not in text_of(signed_in(third).get("/admin/"))
    assert end(person, change).status_code == 404
    on_prices_page(third, shelf, "0.01")  # what was ended counts no more: this is a new question
    assert Shelf.objects.get(pk=shelf.pk).price == Decimal("2.50")
    on_prices_page(first, shelf, "0.01")
    assert Shelf.objects.get(pk=shelf.pk).price == Decimal("0.01")


def test_who_asked_reads_of_a_rejection_for_a_day() -> None:
    first, second = keeper(), keeper()
    shelf = own_shelf(make_product(name="Gems", price="2.50"))
    on_prices_page(first, shelf, "0.01")
    change, told = TwoPersonChange.objects.get(), f"{second} rejected your request: Gems: 0.01 USD"
    end(second, change)
    assert told in text_of(signed_in(first).get("/admin/"))

    TwoPersonChange.objects.update(ended_at=timezone.now() - timedelta(hours=25))
    assert told not in text_of(signed_in(first).get("/admin/"))
    on_prices_page(first, shelf, "0.01")  # the request waits again
    assert told not in text_of(signed_in(first).get("/admin/"))


@pytest.mark.parametrize("ask", [on_shelf_page, on_product_page])
def test_who_asked_reads_one_message_on_the_page(ask: Any) -> None:
    first, second = keeper(), keeper()
    shelf = own_shelf(make_product(name="Gems", price="2.50"))

    page = signed_in(first).get(ask(first, shelf, "0.01")["Location"])

    (told,) = [html.unescape(re.sub(r"<[^>]*>", "", str(one))) for one in page.context["messages"]]
    assert told == (
        "You asked a second person for: Gems: 0.01 USD instead of 2.50 USD. It needs a second"
        f" person, so nothing has changed yet. These may agree: {second}. Withdraw…"
    )


@pytest.mark.parametrize("row", [make_product, make_topup_product])
def test_a_withdrawn_request_is_in_the_timeline_of_the_product(row: Any) -> None:
    first = staff_with(StaffRole.STOCK_KEEPER)
    product = row(name="Gems", price="2.50")
    priced = own_shelf(product) if row is make_product else product
    on_prices_page(first, priced, "0.01")
    end(first, TwoPersonChange.objects.get(), note="typed wrong")

    page = signed_in(first).get(url(product))

    what = [one.what for one in page.context["timeline"].rows]
    assert what[:2] == ["Request for a second person ended", "Second person asked"]
    assert "typed wrong. Withdrawn: Gems: 0.01 USD instead of 2.50 USD" in text_of(page)
    # A request may hold costs and the prices of lists, which not all readers of shelves see.
    for rights in ([], ["catalogue.view_batch"], ["catalogue.view_pricelist"]):
        reader = make_staff(
            "catalogue.view_product", "catalogue.view_shelf", "topups.view_topupproduct", *rights
        )
        assert "Second person" not in text_of(signed_in(reader).get(url(product)))


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


@pytest.mark.parametrize(
    ("ask", "box"),
    [(on_shelf_page, "price-confirmed"), (on_product_page, "shelves-0-price-confirmed")],
)
def test_the_page_of_a_row_opens_filled_and_one_button_agrees(ask: Any, box: str) -> None:
    first, second = keeper(), keeper()
    shelf = own_shelf(make_product(name="Gems", price="2.50"))
    ask(first, shelf, "0.01")
    ((_words, asked),) = lines_of(second).items()

    browser = signed_in(second)
    page = browser.get(asked)
    assert "0.01 USD" in text_of(page)
    assert "Please correct" not in text_of(page)
    assert "Confirm it above" not in text_of(page)
    assert "They take effect when you confirm." in text_of(page)
    assert page.content.decode().count(f'name="{box}"') == 1
    assert "Another person must agree" not in text_of(page)
    assert "0.01" not in form_of(browser, asked.partition("?")[0]).values()  # nothing is saved
    fields = form_of(browser, asked) | hidden(page)
    assert fields[box] == "0.01"
    assert not TwoPersonChange.objects.exclude(approved_by=None).exists()
    assert ">Confirm<" in re.sub(r"\s", "", page.content.decode())
    done = browser.post(asked, fields, follow=True)
    assert f"{first} asked for these prices, and you agreed." in text_of(done)

    assert Shelf.objects.get(pk=shelf.pk).price == Decimal("0.01")
    assert TwoPersonChange.objects.get().approved_by == second


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("ask", [on_shelf_page, on_product_page, on_prices_page])
def test_a_filled_page_opens_without_a_transaction(ask: Any) -> None:
    ask(keeper(), own_shelf(make_product(name="Gems", price="2.50")), "0.01")
    ((_words, asked),) = lines_of(second := keeper()).items()
    assert "0.01 USD" in text_of(signed_in(second).get(asked))


def test_a_larger_step_opens_filled_and_agrees() -> None:
    first, second = keeper(), keeper()
    shelf = own_shelf(make_product(name="Gems", price="2.50"))
    browser, address = signed_in(first), url(shelf)
    preview = browser.post(address, form_of(browser, address) | {"quantity_step": "10"})
    browser.post(address, hidden(preview))
    ((words, asked),) = lines_of(second).items()
    assert words == f"{first} asks for: Gems: 2.50 USD for 10 instead of 2.50 USD"

    browser = signed_in(second)
    fields = form_of(browser, asked)
    assert fields["quantity_step"] == "10"
    browser.post(asked, fields)
    assert Shelf.objects.get(pk=shelf.pk).quantity_step == 10


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


def test_a_price_on_the_page_of_a_product_asks_people_who_may_open_it() -> None:
    first, shelf = keeper(), own_shelf(make_product(name="Gems", price="2.50"))
    sees_shelves = make_staff("catalogue.view_shelf", "catalogue.change_shelf")
    second = keeper()
    on_product_page(first, shelf, "0.01")

    assert not lines_of(sees_shelves)
    ((_words, address),) = lines_of(second).items()
    assert signed_in(second).get(address).status_code == 200
    on_shelf_page(sees_shelves, shelf, "0.01")  # the same is an agreement on any page
    assert Shelf.objects.get(pk=shelf.pk).price == Decimal("0.01")


def test_only_people_with_the_right_open_a_filled_form() -> None:
    ask_many(keeper(), 1)
    change = TwoPersonChange.objects.get()
    asked = f"{change.data['url']}&asked={change.pk}"
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
    askers = shelf.price_changes.order_by("-pk").values_list("asked_by", flat=True)
    assert list(askers[:2]) == ["", str(first)]
    assert entries.latest("pk").note == ""


def test_the_audit_entry_of_a_request_has_no_digest() -> None:
    ask_many(keeper(), 12)
    entries = AuditEntry.objects.filter(
        note__startswith="Waits for another: prices: A long name 00"
    )
    assert entries.count() == entries.values("object_id").distinct().count() == 12  # shelves
    assert entries[0].note.endswith("… (12 in all)")


def test_a_request_is_in_the_trail_of_what_it_concerns(db: None) -> None:
    first, second = keeper(), keeper()
    shelf = own_shelf(make_product(name="Gems", price="2.50"))
    for person in (first, second):
        on_prices_page(person, shelf, "0.01")
    boss = signed_in(make_staff(superuser=True))

    for of, about in (("product", "Gems"), ("shelf", str(shelf.pk))):
        filters = {"of": of, "about": about, "kind": "request_agreed"}
        (line,) = boss.get("/admin/trail/", filters).context["rows"]
        assert (line.who, line.url) == (str(second), url(shelf))
        link = f'<a href="{url(shelf)}" class="text-link">Gems</a>'
        assert line.note == f"Asked by {first}: {link}: 0.01 USD instead of 2.50 USD"
    assert "Second person agreed" in text_of(boss.get(url(shelf)))
    assert "Second person agreed" in text_of(signed_in(second).get(url(shelf)))


def test_a_request_for_an_account_or_a_list_is_in_its_trail(db: None) -> None:
    first, account = keeper(), make_account()
    data = {"prices": [{"kind": "shelf", "pk": 1, "list": None}], "number": 1, "list": None}
    price_list = PriceList.objects.create(name="Gold", currency="USD")
    in_list = {"prices": 2 * [{"kind": "shelf", "pk": 1, "list": price_list.pk}], "number": 2}
    for what, about in (("a", data | {"account": account.pk}), ("b", in_list), ("c", {})):
        ask_or_agree(what=what, about=None, actor=first, data=about)

    made = AuditEntry.objects.filter(action="request_made").order_by("pk")
    assert list(made.values_list("object_type", "object_id", "reference")) == [
        ("accounts.account", str(account.pk), str(account)),
        ("catalogue.pricelist", str(price_list.pk), "Gold"),
        ("auth.user", str(first.pk), str(first)),
    ]


@pytest.mark.parametrize("page", ["shelf", "product"])
def test_both_people_see_the_margin_of_a_price_below_its_cost(page: str) -> None:
    first, second = keeper(), keeper()
    shelf = own_shelf(make_product(name="Gems", price="10.19"))
    batch = make_batch(shelf, 1)
    Batch.objects.filter(pk=batch.pk).update(unit_cost="8.71", cost_currency="USD")
    browser, address = signed_in(first), url(shelf if page == "shelf" else shelf.product)
    name = "price" if page == "shelf" else "shelves-0-price"
    asked = browser.post(address, form_of(browser, address) | {name: "8.00"})

    assert "is below the cost of the codes in stock, needs a second person" in text_of(asked)
    assert "10.19 USD 8.00 USD-21.5 % 14.5 % →" in text_of(asked)
    assert "cost 8.71" in text_of(asked)
    assert "Ask for approval" in text_of(asked)
    assert not TwoPersonChange.objects.exists()
    browser.post(address, hidden(asked))

    ((_words, filled),) = lines_of(second).items()
    browser = signed_in(second)
    preview = browser.get(filled)
    (question,) = preview.context["questions"]
    assert (question["old"], question["new"]) == ("10.19 USD", "8.00 USD")
    assert "bg-red-100" in question["margin"]
    assert "10.19 USD → 8.00 USD (-21.5 %), margin 14.5 % →" in text_of(preview)
    done = browser.post(filled, form_of(browser, filled) | hidden(preview), follow=True)
    assert f"{first} asked for these prices, and you agreed." in text_of(done)
    assert Shelf.objects.get(pk=shelf.pk).price == Decimal("8.00")


def test_a_ticked_box_is_no_preview_of_another_price() -> None:
    product = make_product(name="Gems", price="10.00")
    dear = Shelf.objects.get(variation=make_variation(product, price="20.00"))
    batch = make_batch(dear, 1)
    Batch.objects.filter(pk=batch.pk).update(unit_cost="19.00", cost_currency="USD")
    browser, address = signed_in(keeper()), url(product)
    typed = form_of(browser, address) | {"shelves-0-price": "15.00", "shelves-1-price": "18.50"}
    boxes = {"shelves-0-price-confirmed": "15.00", "shelves-1-price-confirmed": "sNaN"}
    asked = browser.post(address, typed | boxes)

    assert "20.00 USD 18.50 USD" in text_of(asked)
    assert not TwoPersonChange.objects.exists()
    browser.post(address, typed | boxes | {"shelves-1-price-confirmed": "18.50"})
    assert TwoPersonChange.objects.exists()
