"""Every page of the back office answers every query and shows no secret."""

import hashlib
import html
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import pytest
from django.contrib import admin
from django.contrib.admin.models import LogEntry
from django.contrib.admin.views.autocomplete import AutocompleteJsonView
from django.contrib.auth.models import Group, User
from django.db import connection, transaction
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse
from pytest_django import DjangoAssertNumQueries, DjangoDbBlocker

from accounts.models import Account, ApiClient, OwnCompany
from audit.models import AuditEntry
from catalogue.models import Category
from figures.sales_counting import count_sales
from merchants.models import EmailedReport, Invitation
from operators.telegram.models import PlatformSettings
from operators.warnings.models import WarningRule
from tests.factories import make_account, make_client
from tests.merchants.people import make_member
from tests.operators.back_office import (
    World,
    is_guarded,
    list_url,
    make_staff,
    rows_for_a_module,
    shown_models,
    signed_in,
    url,
    without_frame,
)
from topups.models import Fulfilment, TopUpProduct

pytestmark = pytest.mark.menu

PAGE = 6  # rows of a long list and of an autocompletion; as shipped, they show 50 and 20
FEW, MANY = 3, 7
CONTENT = "{% block content %}{% endblock %}"  # of a page without the frame
ODD_TERMS = [
    "%_'; --\\",
    "a\x00b",
    "-1",
    "\u0661\u0662",
    "9" * 19,
    "9" * 40,
    "🙂 code:",
    "code:1",
    "x" * 3000,
]

# The platform settings and our own company are one row each, whose list leads to its form
# (tests/telegram, tests/operators/merchants/test_companies.py). The list of
# audit entries leads to the audit trail (test_audit_trail.py). A rule is one row for each kind of
# warning (test_warnings.py). A person sees only the few reports that come to them
# (test_reports_by_email.py).
ELSEWHERE = (OwnCompany, PlatformSettings, AuditEntry, WarningRule, EmailedReport)
LISTED = [model for model in shown_models() if model not in ELSEWHERE]


@dataclass(frozen=True)
class Pages:
    """A model's pages: its list with many rows, and the page of its latest row."""

    queries_for_few: int  # of the list, while it had few rows
    queries: int
    rows: int
    list: str
    page: str
    headers: tuple[Any, Any]  # of both


@contextmanager
def pages_of(rows: int) -> Iterator[None]:
    """Shorter pages of every list: rows take most of the time."""
    with pytest.MonkeyPatch.context() as patch:
        for model in LISTED:
            patch.setattr(admin.site._registry[model], "list_per_page", rows)
        yield


@pytest.fixture(scope="module")
def shown(django_db_setup: None, django_db_blocker: DjangoDbBlocker) -> Iterator[dict[Any, Pages]]:
    """The pages of each model. They are rendered once, because rows take most of the time.

    The rows are made once for this module, in a transaction around those of the tests. Every test
    that uses them asks for `db`: pytest-django runs tests without it after all other files.
    """
    with rows_for_a_module(django_db_blocker):
        with pages_of(PAGE):
            pages = _render_all()
        yield pages


def _render_all() -> dict[Any, Pages]:
    world = World()
    world.grow(FEW)
    costs = {}
    for model in LISTED:
        browser = signed_in()  # a session of a minute ago would be prolonged, with a query
        with without_frame(CONTENT):
            browser.get(list_url(model))
        _, costs[model] = _list_of(model, browser)
    world.grow(MANY - FEW)
    SECRETS[:] = _secrets(world)
    pages = {}
    for model in LISTED:
        browser = signed_in()
        answer, queries = _list_of(model, browser)
        page = _page_of(model, browser)
        pages[model] = Pages(
            queries_for_few=costs[model],
            queries=queries,
            rows=len(answer.context["cl"].result_list),
            list=answer.content.decode(),
            page=page.content.decode(),
            headers=(answer.headers, page.headers),
        )
    return pages


SECRETS: list[str] = []


@pytest.fixture
def browser(shown: dict[Any, Pages], db: None) -> Client:
    return signed_in()


def test_every_model_has_rows_to_show(
    shown: dict[Any, Pages], db: None, subtests: pytest.Subtests
) -> None:
    for model in LISTED:
        name = model._meta.verbose_name_plural
        with subtests.test(model._meta.label_lower):
            assert model.objects.count() >= MANY, f"World.grow makes no {name}"


def test_a_long_list_costs_no_more_queries_than_a_short_one(
    shown: dict[Any, Pages], db: None, subtests: pytest.Subtests
) -> None:
    for model in LISTED:
        with subtests.test(model._meta.label_lower):
            assert shown[model].queries <= shown[model].queries_for_few
            assert shown[model].rows == PAGE


def test_a_list_shows_fifty_rows_on_a_page(subtests: pytest.Subtests) -> None:
    for model in LISTED:
        with subtests.test(model._meta.label_lower):
            assert admin.site._registry[model].list_per_page == 50


def test_no_object_page_shows_a_secret(
    shown: dict[Any, Pages], db: None, subtests: pytest.Subtests
) -> None:
    assert len(SECRETS) > MANY
    for model in LISTED:
        with subtests.test(model._meta.label_lower):
            for text in (shown[model].list, shown[model].page):
                assert [secret for secret in SECRETS if secret in text] == []
                assert "b&#x27;" not in text  # bytes as Python writes them


def test_every_list_and_form_has_security_headers_and_is_not_cached(
    shown: dict[Any, Pages], db: None, subtests: pytest.Subtests
) -> None:
    """test_page_headers.py asks the other pages."""
    for model in LISTED:
        with subtests.test(model._meta.label_lower):
            for headers in shown[model].headers:
                assert is_guarded(headers)
                assert "no-store" in headers["Cache-Control"]


def test_each_link_of_a_page_works(
    browser: Client, shown: dict[Any, Pages], subtests: pytest.Subtests
) -> None:
    statuses: dict[str, int] = {}
    for model in LISTED:
        rows = shown[model].list.partition("<tbody")[2][:10_000]
        links = re.findall(r'<a href="([^"]+)" class="text-link"', shown[model].page + rows)
        with subtests.test(model._meta.label_lower), pages_of(5), without_frame(CONTENT):
            for link in set(links) - statuses.keys():
                with transaction.atomic():
                    statuses[link] = browser.get(html.unescape(link)).status_code
            assert {link for link in links if statuses[link] != 200} == set()


def test_a_list_answers_odd_queries(browser: Client, shown: dict[Any, Pages]) -> None:
    """`test_list_queries.py` asks every list, in `make system-test`."""
    queries = [{"q": ODD_TERMS[1]}, {"p": "x"}, {"o": "99.x"}, {"nonsense": "1"}]
    with pages_of(2), without_frame(CONTENT):
        for query in queries:
            assert browser.get(list_url(Fulfilment, **query), follow=True).status_code == 200, query
        assert browser.get(f"{list_url(Fulfilment)}%00/change/").status_code == 302


@pytest.mark.parametrize(
    "chooser",
    [
        {"app_label": "accounts", "model_name": "apiclient", "field_name": "account"},
        {"app_label": "catalogue", "model_name": "referencelink", "field_name": "shelf"},
        {"app_label": "catalogue", "model_name": "product", "field_name": "category"},
        {"app_label": "orders", "model_name": "order", "field_name": "client"},
        {"app_label": "wallets", "model_name": "ledgerentry", "field_name": "wallet"},
    ],
    ids=lambda chooser: f"{chooser['model_name']}.{chooser['field_name']}",
)
def test_autocompletion_takes_few_queries(
    chooser: dict[str, str],
    browser: Client,
    django_assert_max_num_queries: DjangoAssertNumQueries,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(AutocompleteJsonView, "paginate_by", PAGE)
    for term in ("", *ODD_TERMS):
        with django_assert_max_num_queries(6):
            answer = browser.get(reverse("admin:autocomplete"), {**chooser, "term": term})

        assert answer.status_code == 200, term
        assert len(answer.json()["results"]) == PAGE or term


def test_the_first_page_works(
    browser: Client, django_assert_max_num_queries: DjangoAssertNumQueries
) -> None:
    count_sales()
    # Of them 12 are for sales, stock and refunds, 1 for warnings and 6 for what is left to do
    # before the first sale. Each kind of work has one, and only a superuser has the work of every
    # role. Imports that wait for a second person have another, which names who asks, and so have
    # requests that a colleague rejected.
    with django_assert_max_num_queries(48):
        answer = browser.get(reverse("admin:index"))

    assert answer.status_code == 200
    assert "without codes</a>" in answer.content.decode()


def test_the_search_through_all_sections_works_from_the_cache_too(db: None) -> None:
    browser = signed_in()
    for _ in range(2):
        answer = browser.get(reverse("admin:search"), {"s": "orders", "extended": "1"})

        assert answer.status_code == 200
        assert "Orders" in answer.content.decode()


def test_the_log_in_page_lets_staff_in(db: None) -> None:
    user = make_staff()
    user.set_password("correct horse battery staple")
    user.save()
    browser = Client()
    page = reverse("admin:login")

    assert browser.get(page).status_code == 200
    wrong = browser.post(page, {"username": user.username, "password": "wrong"})
    right = browser.post(
        page, {"username": user.username, "password": "correct horse battery staple"}
    )

    assert (wrong.status_code, right.status_code) == (200, 302)
    assert "name and password do not match" in wrong.content.decode()
    assert right["Location"] == reverse("admin:index")
    assert browser.get(right["Location"]).status_code == 200
    assert browser.get(reverse("admin:password_change")).status_code == 200


def test_the_path_at_the_top_has_the_words_of_the_menu(browser: Client) -> None:
    client, entry = make_client(make_account()), AuditEntry.objects.latest("pk")
    for address, words in (
        (list_url(Fulfilment), ["Desk"]),
        (url(client), ["API clients", f"{client.name} · {client.account}"]),
        (list_url(User), ["Staff"]),
        (url(entry), ["Audit trail", str(entry)]),
        (list_url(User) + "add/", ["Staff", "New person"]),
        (list_url(Group) + "add/", ["Roles", "New role"]),
    ):
        page = browser.get(address).content.decode()
        assert re.findall(r"min-w-0 truncate tracking-tight[^>]*>\s*([^<]+?)\s*<", page) == words


def test_the_list_of_staff_has_no_merchants_people(browser: Client) -> None:
    staff, member = make_staff(), make_member()

    def found(user: User) -> int:
        page = browser.get(list_url(User), {"q": user.username})
        return int(page.context["cl"].result_count)

    assert (found(staff), found(member.user)) == (1, 0)


def test_forms_for_new_rows_say_what_to_enter(browser: Client) -> None:
    for model, text in (
        (Account, "Three capital letters, such as USD."),
        (TopUpProduct, "New orders are announced in Telegram."),
        (ApiClient, "cannot buy."),
        (User, "Receives a link to set a password."),
        (Invitation, "Receives a link to join when you save."),
        (ApiClient, "Requests per minute"),
    ):
        assert text in browser.get(list_url(model) + "add/").content.decode(), text


def test_django_s_own_log_is_neither_written_nor_shown(browser: Client) -> None:
    browser.post(list_url(Category) + "add/", {"name": "Music", "active": "on"})
    category = Category.objects.get(name="Music")
    browser.post(url(category), {"name": "Films", "active": "on"})
    browser.post(url(category, "delete"), {"post": "yes"})

    assert not Category.objects.filter(pk=category.pk).exists()
    assert not LogEntry.objects.exists()
    for row in (make_staff(), make_client(make_account()), AuditEntry.objects.latest("pk")):
        assert (
            f"{url(row).removesuffix('change/')}history/"
            not in browser.get(url(row)).content.decode()
        )


def test_a_new_client_has_no_list_of_keys(browser: Client) -> None:
    new = browser.get(list_url(ApiClient) + "add/")
    existing = browser.get(url(make_client(make_account())))

    assert [len(page.context["inline_admin_formsets"]) for page in (new, existing)] == [0, 1]


def test_no_is_not_shown_as_an_error(browser: Client) -> None:
    left = make_staff()
    User.objects.filter(pk=left.pk).update(is_active=False)

    page = browser.get(list_url(User), {"q": left.username}).content.decode()

    (badge,) = re.findall(r'<div class="([^"]+)"\s+role="img" aria-label="No"', page)
    assert "red" not in badge


def test_each_list_names_its_times(browser: Client) -> None:
    for model in (Account, Invitation, User):
        assert "Times are UTC." in browser.get(list_url(model)).content.decode()


def _list_of(model: Any, browser: Client) -> tuple[Any, int]:
    """The response with the model's list, and how many queries it took."""
    with CaptureQueriesContext(connection) as queries:
        answer = browser.get(list_url(model))
    assert answer.status_code == 200
    return answer, len(queries)


def _page_of(model: Any, browser: Client) -> Any:
    answer = browser.get(url(model.objects.latest("pk")))
    assert answer.status_code == 200
    return answer


def _secrets(world: World) -> list[str]:
    digests = [hashlib.sha256(key.encode()).hexdigest() for key in world.keys]
    return [*world.codes, *world.keys, *digests]
