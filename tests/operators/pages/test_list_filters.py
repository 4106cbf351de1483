"""Only the filters that a list declares work, whatever stands in the address."""

from typing import Any

import pytest
from django.contrib import admin
from django.contrib.admin.exceptions import DisallowedModelAdminLookup
from django.contrib.admin.options import IncorrectLookupParameters
from django.db import DataError, transaction
from django.test import Client, RequestFactory
from django.urls import reverse

from orders.models import Order
from tests.operators.back_office import list_url, make_staff

pytestmark = pytest.mark.django_db

ODD_LOOKUPS = {"regex": "(((((", "year": "99999", "gte": "x", "contains": "a", "exact": "x"}
ODD_VALUES = ("(((((", "99999999999999999999999", "-1", "x", "\x00", "2026-02-31", "")


@pytest.fixture
def lists() -> list[Any]:
    """The lists of the back office, each with a function that reads it with a filter."""
    staff = make_staff(superuser=True)

    def reader(page: Any) -> Any:
        def read(**query: str) -> Any:
            request = RequestFactory().get("/admin/", query)
            request.user = staff
            found = page.get_changelist_instance(request)
            with transaction.atomic():
                list(found.queryset[:1])
            return found

        return read

    return [(page, reader(page)) for page in admin.site._registry.values()]


def test_a_field_that_is_no_filter_is_refused(lists: Any) -> None:
    passed = []
    for page, read in lists:
        declared = {name for spec in read().filter_specs for name in spec.expected_parameters()}
        for field in page.model._meta.concrete_fields:
            for lookup, value in ODD_LOOKUPS.items():
                name = f"{field.name}__{lookup}"
                if name in declared:
                    continue
                try:
                    read(**{name: value})
                except (IncorrectLookupParameters, DisallowedModelAdminLookup):
                    continue
                except Exception as error:
                    passed.append(f"{page}: {name} raised {error!r}")
                else:
                    passed.append(f"{page}: {name} was used")
    assert not passed, "\n".join(passed)


def test_a_filter_refuses_or_ignores_values_that_it_cannot_read(lists: Any) -> None:
    failed, tried = [], 0
    for page, read in lists:
        for name in [one for spec in read().filter_specs for one in spec.expected_parameters()]:
            for value in ODD_VALUES:
                tried += 1
                try:
                    read(**{name: value})
                except IncorrectLookupParameters:
                    continue
                except (DataError, ValueError, OverflowError, TypeError) as error:
                    failed.append(f"{page}: {name}={value!r} raised {error!r}")
    assert tried > 200
    assert not failed, "\n".join(failed)


def test_the_list_says_that_it_is_not_filtered(browser: Client) -> None:
    answer = browser.get(list_url(Order), {"id__regex": "((((("}, follow=True)
    assert answer.status_code == 200
    assert "a filter that this list does not have" in answer.content.decode()


def test_a_file_of_the_list_is_not_sent(browser: Client) -> None:
    file = reverse("admin:orders_order_list_file", args=["csv"])
    answer = browser.get(file, {"total_price__gte": "1"})
    assert answer.status_code == 302
    assert answer["Location"] == f"{list_url(Order)}?e=1"
