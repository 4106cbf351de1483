"""Two price lists side by side: what merchants pay with each, and what one merchant would pay."""

from __future__ import annotations

from typing import Any

from django import forms
from django.contrib import admin
from django.db.models import BooleanField, Func, Q, QuerySet
from django.db.models.functions import Now
from django.http import HttpRequest, HttpResponse
from django.utils.http import urlencode
from django.utils.translation import gettext as _
from unfold.widgets import (
    UnfoldAdminSelectWidget,
    UnfoldAdminTextInputWidget,
    UnfoldBooleanSwitchWidget,
)

from accounts.models import Account
from catalogue.models import PriceList, ReferenceLink
from catalogue.selectors import MerchantPrice, RegularPrice, buyer
from core.texts import lazy
from operators.catalogue.price_list_prices import PER_PAGE, difference, price_text, rows_of
from operators.frame.base import (
    CappedPaginator,
    SearchSelect,
    amount,
    link_to,
    site_page,
)
from operators.frame.reader import may_view
from topups.selectors import MerchantPrice as TopUpPrice

TIMES = ("price", "next_price", "next_price_from")


def _list(what: str) -> Any:
    return forms.ModelChoiceField(
        PriceList.objects.order_by("name"),
        required=False,
        empty_label=lazy("Regular prices"),
        label=what,
        widget=UnfoldAdminSelectWidget,
    )


class ComparisonForm(forms.Form):
    """The two sides. A merchant's list takes the place of the left one."""

    account = forms.ModelChoiceField(
        Account.objects.all(),
        required=False,
        label=lazy("What would this merchant pay?"),
        help_text=lazy("Its list now takes the place of the left one."),
        widget=SearchSelect(
            ReferenceLink._meta.get_field("account"),
            admin.site,
            attrs={"class": "unfold-admin-autocomplete"},
        ),
    )
    left = _list(lazy("Price list"))
    right = _list(lazy("Compared with"))
    kind = forms.ChoiceField(
        choices=[("shelf", lazy("Voucher codes")), ("topupproduct", lazy("Top-ups"))],
        label=lazy("Prices of"),
        widget=UnfoldAdminSelectWidget,
    )
    q = forms.CharField(
        required=False, label=lazy("Name of a product"), widget=UnfoldAdminTextInputWidget
    )
    different = forms.BooleanField(
        required=False, label=lazy("Only differences"), widget=UnfoldBooleanSwitchWidget
    )

    def clean(self) -> dict[str, Any]:
        values = super().clean() or {}
        account = values.get("account")
        if account is not None:
            values["left"] = PriceList.objects.filter(pk=account.price_list_id or 0).first()
        sides = [one for one in (values.get("left"), values.get("right"), account) if one]
        if not sides and not self.errors:
            raise forms.ValidationError(_("Choose a price list or a merchant."))
        if len({one.currency for one in sides}) > 1:
            raise forms.ValidationError(_("The two have different currencies."))
        values["currency"] = sides[0].currency if sides else ""
        return values


def _prices(kind: str, price_list: PriceList | None, currency: str) -> Any:
    """The price of each row in a list, or the regular one."""
    list_id = None if price_list is None else price_list.pk
    side = buyer(Account(currency=currency, price_list_id=list_id))
    if kind == "shelf":
        of_row = ("pk", "product_id", "product__category_id", "product__currency")
        return MerchantPrice(*side, *of_row, *TIMES, Now())
    return TopUpPrice(*side, *("pk", "category_id", "currency"), *TIMES, Now())


def _sides(values: dict[str, Any]) -> list[Any]:
    """The price of a row on the left and on the right."""
    return [_prices(values["kind"], values[side], values["currency"]) for side in ("left", "right")]


def _rows(values: dict[str, Any]) -> QuerySet[Any]:
    """The rows to compare. Prices of all are computed only to find those that differ."""
    rows = rows_of(values["kind"], values["currency"])
    if text := values["q"]:
        named = Q(name__icontains=text)
        if values["kind"] == "shelf":
            named = Q(product__name__icontains=text) | Q(variation__name__icontains=text)
        rows = rows.filter(named)
    if values["different"]:
        differ = {"template": "(%(expressions)s)", "arg_joiner": " IS DISTINCT FROM "}
        rows = rows.filter(Func(*_sides(values), output_field=BooleanField(), **differ))
    return rows


def compare_prices(request: HttpRequest) -> HttpResponse:
    """Shows the prices of two lists side by side, a page at a time."""
    asked = {"kind": "shelf", **request.GET.dict()}
    form = ComparisonForm(asked if request.GET else None)
    if not may_view(request, Account):  # its search would fail for them
        del form.fields["account"]
    context: dict[str, Any] = {"rows": None}
    if form.is_valid():
        values = form.cleaned_data
        page = CappedPaginator(_rows(values), PER_PAGE).get_page(request.GET.get("page"))
        left_price, right_price = _sides(values)
        found: Any = page.object_list
        rows = found.annotate(
            regular=RegularPrice(*TIMES, Now()), left=left_price, right=right_price
        )
        left, right = (str(values[side] or _("Regular prices")) for side in ("left", "right"))
        account, currency = values.get("account"), values["currency"]
        same = values["left"] == values["right"]
        if account is None:
            both = _("%(left)s and %(right)s, in %(currency)s")
            heading = _("%(left)s, in %(currency)s") if same else both
        else:
            del form.fields["left"]
            both = _("What %(account)s pays now (%(left)s), and would pay (%(right)s)")
            heading = _("What %(account)s pays now (%(left)s)") if same else both
        context = {
            "heading": heading
            % {"left": left, "right": right, "currency": currency, "account": account},
            "left": left,
            "right": right,
            "same": same,
            "both_lists": bool(values["left"] and values["right"]) and not same,
            "page": page,
            "query": urlencode({name: str(asked[name]) for name in asked if name != "page"}),
            "rows": [
                {
                    "link": link_to(row),
                    "regular": amount(row.regular, currency),
                    "left": price_text(row.left, currency),
                    "right": price_text(row.right, currency),
                    "difference": difference(row.left, row.right),
                }
                for row in rows
            ],
        }
    title = _("Compare price lists")
    options = PriceList._meta
    return site_page(
        request, "admin/compare_prices.html", opts=options, title=title, form=form, **context
    )
