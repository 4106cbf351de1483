"""The lists, filters, searches, pages and exports of both sites, from what Django registers."""

from collections.abc import Iterator
from typing import Any
from urllib.parse import parse_qsl, urlencode

from django import forms
from django.test import Client
from django.urls import URLPattern, get_resolver, reverse
from unfold.contrib.filters.admin import AutocompleteSelectFilter

from accounts.models import ApiKey
from merchants import urls_docs
from orders.models import Order
from tests.merchants.test_identity_matrix import DO, ROWS
from tests.operators.back_office import list_url, shown_models, url

# The back office's pages that are no list and no row of one.
OF_STAFF = ("admin:index", "system", "system_now", "search", "audit_trail", "passkeys")
EXPORTS_OF_STAFF = ("audit_trail_file",)
# They lead elsewhere: the history has no signed root, and the member is signed in already.
LEAD_ELSEWHERE = {"statement_proof", "two_factor", "two_factor_off"}
NO_SUCH = "nothing-like-this"


def staff_pages(browser: Client) -> Iterator[str]:
    """The lists of the back office with each filter and search, the newest row of each, and the
    other pages."""
    for name in OF_STAFF + EXPORTS_OF_STAFF:
        yield reverse(name)
    yield f"{reverse('search')}?{urlencode({'q': NO_SUCH})}"
    yield f"{reverse('search')}?{urlencode({'q': Order.objects.latest('id').reference})}"
    for model in shown_models():
        first = list_url(model)
        answer = browser.get(first)
        if answer.status_code == 302:  # a list that leads to its only page
            yield answer["Location"]
            continue
        yield first
        shown = answer.context["cl"]
        row = next(iter(shown.result_list), None)
        queries = [query for spec in shown.filter_specs for query in choices_of(spec, shown)]
        if shown.search_fields:
            queries += [{"q": NO_SUCH}, *([{"q": str(row.pk)}] if row else [])]
        yield from (f"{first}?{urlencode(query)}" for query in queries)
        if row:
            yield url(row)


def choices_of(spec: Any, shown: Any) -> list[dict[str, str]]:
    """The parameters of each choice of a filter; of the related rows and times, one."""
    if isinstance(spec, AutocompleteSelectFilter):
        pks = shown.model._default_manager.order_by("-pk").values_list(spec.field_path, flat=True)
        pk = next((pk for pk in pks[:1000] if pk is not None), None)
        return [{spec.lookup_kwarg: str(pk)}] if pk is not None else []
    choices = list(spec.choices(shown))
    fields = {
        name: field
        for choice in choices
        if "form" in choice
        for name, field in choice["form"].fields.items()
    }
    queries = [
        {name: str(value)}
        for name, field in fields.items()
        for value, _ in getattr(field, "choices", ())
        if value not in ("", None)
    ]
    dates = [name for name, field in fields.items() if isinstance(field, forms.SplitDateTimeField)]
    if dates:
        old = {f"{name}_0": f"{2020 + n * 5}-01-01" for n, name in enumerate(dates)}
        queries.append(old | {f"{name}_1": "00:00:00" for name in dates})
    return queries or [
        dict(parse_qsl(choice["query_string"][1:])) for choice in choices if "form" not in choice
    ]


def merchant_pages(order: Order) -> Iterator[str]:
    """The pages of the merchant site that a member of the order's account opens, and the public
    documentation. Left out are those about people, sessions and invitations."""
    key = ApiKey.objects.filter(client=order.client_id).latest("pk")
    ids = {"reference": order.reference, "client_id": order.client_id, "key_id": key.pk}
    for name, row in ROWS.items():
        if name in LEAD_ELSEWHERE:
            continue
        if row.least and row.how != DO and set(row.names) <= set(ids):
            yield row.path(name, ids)
    for pattern in urls_docs.urlpatterns:
        words = {"name": "buy.py"} if pattern.name == "snippet" else {}
        yield reverse(f"docs:{pattern.name}", kwargs=words)


def unlisted_names() -> set[str]:
    """The named pages under /admin/ outside the admin's own that no list here has."""
    named = {
        str(pattern.name)
        for pattern in get_resolver("config.urls_pages").url_patterns
        if isinstance(pattern, URLPattern)
        and pattern.name
        and str(pattern.pattern).startswith("admin/")
    }
    return named - set(OF_STAFF + EXPORTS_OF_STAFF)
