"""Changing the regular prices of many shelves or top-up products on one page, now or later."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from decimal import Decimal
from functools import partial, partialmethod
from itertools import chain
from typing import Any

from django import forms
from django.contrib import admin, messages
from django.contrib.admin.utils import unquote
from django.core.exceptions import PermissionDenied
from django.db.models import DecimalField, F, Func, Q, QuerySet, Value
from django.db.models.functions import Now
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import path, reverse
from django.utils.html import format_html, format_html_join
from django.utils.http import urlencode
from django.utils.translation import gettext as _
from django.utils.translation import ngettext
from unfold.admin import ModelAdmin
from unfold.decorators import action
from unfold.widgets import (
    UnfoldAdminDecimalFieldWidget,
    UnfoldAdminSelectWidget,
    UnfoldAdminTextInputWidget,
)

from accounts.form_fields import NumberField
from audit.actor import in_words
from catalogue.models import PriceList, PriceListEntry, Shelf
from catalogue.prices import Prices, set_prices
from catalogue.selectors import RegularPrice, newest_changes
from core.formats import local_number
from core.inputs import InputProblem, is_id
from core.texts import lazy
from figures.low_prices import find_low_prices, is_large_fall
from figures.price_lines import Key, PriceChange, Terms, stock_costs, watch_prices
from operators.catalogue.price_list_changes import (
    MOVED,
    Changes,
    ask,
    confirms,
    show_problem,
)
from operators.catalogue.price_list_prices import margin_change
from operators.frame.base import (
    EMPTY,
    amount,
    link_to,
    list_url,
    page,
    site_page,
    staff_of,
    time_cell,
    url_of,
)
from operators.frame.form_fields import (
    LARGE_CHANGE,
    PriceField,
    PriceForm,
    check_price_shown,
    in_zone,
)
from operators.imports.low_prices import (
    PRICES,
    LowPrices,
    PriceRequest,
    another_must_agree,
    changing_prices,
    keep_data,
    keep_page,
    name_approvers,
    rehearse,
    two_people_set_low_prices,
    who_must_agree,
)
from operators.imports.pages import sees_cost
from operators.sign_in.asked_changes import (
    ASKED,
    address_of,
    data_of_form,
    right_to_change,
    show_other_requests,
    show_waiting_changes,
)

MOST = 100  # rows on one page
MORE_PRICES = lazy(
    "This page has %(most)s of the chosen rows, up to %(last)s. Change the others afterwards."
)
BOX = "price-confirmed"  # the end of the name of a box (PriceForm)
LISTS = 5  # names of price lists in one sentence
SHOWN = 20  # price changes in the history of a row


class PricesForm(forms.Form):
    """The new price of each row, or a change of all in percent; and when they begin.

    Nothing is chosen at first, so nobody changes prices by a percentage that they meant as a price.
    """

    change = forms.ChoiceField(
        choices=[
            ("", lazy("Choose one")),
            ("percent", lazy("all by the same percentage")),
            ("prices", lazy("each to a price of its own")),
        ],
        label=lazy("How prices change"),
        widget=UnfoldAdminSelectWidget,
    )
    percent = NumberField(
        required=False,
        min_value=Decimal("-99"),
        max_value=Decimal("1000"),
        decimal_places=2,
        label=lazy("Percent"),
        help_text=lazy("Such as 5 or -2.5."),
        widget=UnfoldAdminDecimalFieldWidget,
    )
    starts_at = forms.DateTimeField(
        required=False,
        label=lazy("Applies from"),
        help_text=in_zone(lazy("In {zone}. Empty: at once.")),
        widget=UnfoldAdminTextInputWidget(attrs={"type": "datetime-local"}),
    )

    def __init__(self, *arguments: Any, rows: Sequence[Any], **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._rows = rows
        if len(rows) == 1:
            self.fields["change"].initial = "prices"
        for row in rows:
            field = PriceField(initial=row.price, show_hidden_initial=True)
            field.label, field.help_text = _("New price of %(row)s") % {"row": row}, ""
            field.widget.attrs["aria-label"] = field.label
            self.fields[_name(row)] = field

    def clean(self) -> None:
        """Refuses numbers that the choice leaves out, and a price that was typed in place of one
        that is no longer current."""
        change, percent = self.cleaned_data.get("change"), self.cleaned_data.get("percent")
        if change == "percent":
            if percent is None and "percent" not in self.errors:
                self.add_error("percent", _("Enter a value."))
            if any(_name(row) in self.changed_data for row in self._rows):
                self.add_error(
                    "change", _("You also typed prices. Choose a percentage or prices, not both.")
                )
            return
        if change == "prices" and percent is not None:
            self.add_error("percent", _("Leave this empty if each row has a price of its own."))
        for row in self._rows:
            if _name(row) in self.changed_data:
                try:
                    check_price_shown(self, _name(row), row.price)
                except forms.ValidationError as error:
                    self.add_error(_name(row), error)

    def hidden_prices(self) -> list[tuple[str, str]]:
        """The hidden fields with the prices that the form showed."""
        names = [self[_name(row)].html_initial_name for row in self._rows]
        return [(name, self.data.get(name, "")) for name in names]

    def new_prices(self, rows: QuerySet[Any], currency: str) -> dict[int, Decimal | None]:
        """The new price of each row."""
        percent = self.cleaned_data["percent"]
        if percent is None:
            typed, changed = self.cleaned_data, self.changed_data
            return {
                row.pk: typed[_name(row)] if _name(row) in changed else row.price for row in rows
            }
        after = Func(
            RegularPrice("price", "next_price", "next_price_from", Now()),
            Value(-percent, DecimalField()),
            F(currency),
            function="catalogue_discounted",
            output_field=DecimalField(),
        )
        return dict(rows.annotate(after=after).values_list("pk", "after"))


def _name(row: Any) -> str:
    return f"price-{row.pk}"


class _UnseenChanges(Exception):
    """A form would change prices in price lists, or set low prices, that the person has not
    seen."""

    def __init__(self, changes: Changes) -> None:
        super().__init__("Prices would change that nobody has seen.")
        self.changes = changes


def _ask_first(
    request: HttpRequest, about: PriceRequest, terms: dict[Key, Terms], right: str
) -> None:
    """Raises _UnseenChanges unless the person has seen the changes in price lists, and each low
    price: in the preview, or beside the box that confirms it."""
    low = about.foreseen[1]
    must_agree = who_must_agree(low, words=about.words, right=right, actor=staff_of(request))
    in_lists = about.watched.in_lists(terms)
    regular = [one for one in about.foreseen[0] if one.price_list is None]
    changes = Changes([*regular, *in_lists], must_agree)
    is_unseen = in_lists or (must_agree and not all(_is_ticked(request, one) for one in low))
    if is_unseen and not confirms(request, changes):
        raise _UnseenChanges(changes)


def _is_ticked(request: HttpRequest, low: PriceChange) -> bool:
    """Whether the form has the ticked box of this row, and with this price."""
    for name, value in request.POST.items():
        # The table of a product sends the id of each row; the page of one row does not.
        row = request.POST.get(name.removesuffix(BOX) + "id", str(low.key[1]))
        if name.endswith(BOX) and row == str(low.key[1]):
            with suppress(ArithmeticError):  # any text may be sent
                return Decimal(str(value)) == low.new
    return False


class LowPricePage(ModelAdmin):
    """A page whose form sets prices. A low price waits for a second person.

    It shows low prices and asks, and also if prices in price lists change with it, such as by
    another category.
    """

    change_form_before_template = "admin/confirm_prices.html"

    def render_change_form(
        self, request: HttpRequest, context: Any, *args: Any, **kwargs: Any
    ) -> HttpResponse:
        """Asks about large changes of prices at the top of the page."""
        inlines = (one.formset.forms for one in context["inline_admin_formsets"])
        all_forms = [context["adminform"].form, *chain.from_iterable(inlines)]
        context["questions"] = _questions(request, all_forms, right_to_change(self.model))
        # A colleague filled the form in: to confirm it is to agree.
        agrees = context["agrees"] = request.method == "GET" and context["adminform"].form.is_bound
        if agrees:
            context["add_button"] = _("Confirm")
            for form in all_forms:
                if getattr(form, "to_confirm", None) is not None:
                    form.errors.pop("price")  # the button confirms it, without a box
        if agrees or len(context["errors"]) == len(context["questions"]):  # nothing is wrong
            context["errors"] = []
        answer: HttpResponse = super().render_change_form(request, context, *args, **kwargs)
        return answer

    def get_form(
        self, request: HttpRequest, obj: Any = None, change: bool = False, **kwargs: Any
    ) -> Any:
        """The form; filled with a request for a second person if the address names one."""
        form: Any = super().get_form(request, obj, change=change, **kwargs)
        data = data_of_form(request) if request.method == "GET" else None
        if data is None:
            return form
        return type(form.__name__, (form,), {"__init__": partialmethod(form.__init__, data)})

    def get_formset_kwargs(self, request: HttpRequest, *args: Any) -> dict[str, Any]:
        options: dict[str, Any] = super().get_formset_kwargs(request, *args)
        return options | {"data": data_of_form(request)}

    def rows_with_prices(self, object_id: str) -> list[QuerySet[Any]]:
        """The rows whose price the form may change."""
        return [self.model._default_manager.filter(pk=object_id)]

    def changeform_view(
        self,
        request: HttpRequest,
        object_id: str | None = None,
        form_url: str = "",
        extra_context: dict[str, Any] | None = None,
    ) -> HttpResponse:
        show_waiting_changes(request)
        key = unquote(object_id or "")
        answer: HttpResponse
        if request.method != "POST" or object_id is None:  # what is new has no price yet
            answer = super().changeform_view(request, object_id, form_url, extra_context)
            return answer
        if not is_id(key):
            raise Http404  # Django would read other texts, such as "+5", as an id, too
        rows, right = self.rows_with_prices(key), right_to_change(self.model)
        try:
            with two_people_set_low_prices(*rows, actor=staff_of(request), right=right) as about:
                save = partial(super().changeform_view, request, object_id, form_url, extra_context)
                # Django saves and reports it in one view; the request says that this is undone.
                request.is_undone = True  # type: ignore[attr-defined]
                terms = rehearse(about.watched, save)
                request.is_undone = False  # type: ignore[attr-defined]
                about.foresee(terms)
                _ask_first(request, about, terms, right)
                answer = save()
        except _UnseenChanges as unseen:
            row = self.get_object(request, key)
            if row is None:
                raise Http404 from None
            return ask(self, request, row, unseen.changes, title=_("Change prices"))
        except LowPrices as low:
            list(messages.get_messages(request))  # drops the message that the row was saved
            show_other_requests(request, low.low)
            keep_data(request, low)
            return HttpResponseRedirect(address_of(request))  # which says that it waits
        except InputProblem as problem:
            list(messages.get_messages(request))
            show_problem(request, problem)
            return HttpResponseRedirect(request.get_full_path())
        _tell_agreement(request, about)
        return answer


def _tell_agreement(request: HttpRequest, about: PriceRequest) -> None:
    if about.asker:
        words = _("%(staff)s asked for these prices, and you agreed.")
        messages.success(request, words % {"staff": about.asker})


def _questions(request: HttpRequest, all_forms: Sequence[Any], right: str) -> list[dict[str, Any]]:
    """The price changes that a person must confirm in these forms, with the margins before and
    after. Who agrees to a request confirms each of its prices."""
    asking = [one for one in all_forms if _price_to_confirm(request, one) is not None]
    rows = [one.instance for one in asking]
    costs = read_costs(request, rows)
    questions = []
    for form, row in zip(asking, rows, strict=True):
        # The form may also have changed the currency and the number of codes in one unit.
        stored, before = type(row).objects.get(pk=row.pk), form.initial["price"]
        after = _price_to_confirm(request, form) or Decimal()
        cost = costs.get(row.pk)
        change = price_change(before, after, cost, _currency_of(row))
        change["old"] = amount(before, _currency_of(stored))
        if cost is not None and before is not None:
            of_new_step = before * row.quantity_step / stored.quantity_step
            change["margin"] = margin_change(of_new_step, after, cost)
        steps = [getattr(one, "quantity_step", 1) for one in (stored, row)]
        falls = before is not None and is_large_fall(before / steps[0], after / steps[1])
        if ASKED not in request.GET and (falls or (cost is not None and after < cost)):
            actor = staff_of(request)
            change["must_agree"] = "" if actor.is_superuser else name_approvers(right, actor)
        change["above"] = _lists_above([{"row": row, "before": before, "after": after}])
        # The form compares the price, so it is in no language.
        questions.append({"row": row, "box": form.box, "price": str(after), **change})
    return questions


def _price_to_confirm(request: HttpRequest, form: Any) -> Decimal | None:
    price: Decimal | None = getattr(form, "to_confirm", None)
    is_filled = request.method == "GET" and isinstance(form, PriceForm) and form.is_bound
    if price is None and is_filled and "price" in form.changed_data:
        price = form.cleaned_data.get("price")
    return price


def _currency_of(row: Any) -> str:
    return str(row.product.currency if isinstance(row, Shelf) else row.currency)


def read_costs(request: HttpRequest, rows: Sequence[Any]) -> dict[int, Decimal]:
    """The costs of one unit of these shelves, by their ids, for people who may see them."""
    if not (sees_cost(request) and rows and isinstance(rows[0], Shelf)):
        return {}
    costs = stock_costs([("shelf", row.pk) for row in rows])
    steps = {row.pk: row.quantity_step for row in rows}
    return {pk: cost * steps[pk] for (_kind, pk), cost in costs.items()}


def price_change(
    before: Decimal | None, after: Decimal | None, cost: Decimal | None, currency: str
) -> dict[str, Any]:
    """A change of a price in words, and the margins before and after. The cost is of one unit."""
    part = after / before - 1 if before and after else None
    return {
        "old": amount(before, currency),
        "new": amount(after, currency),
        "percent": "" if part is None else f"{local_number(part * 100, 1, sign='+')} %",
        "large": part is None or abs(part) > LARGE_CHANGE,
        "margin": margin_change(before, after, cost),
        "has_cost": cost is not None,
    }


class PricesPage(LowPricePage):
    """A list whose chosen rows get new prices on one page, after a preview."""

    currency_path = "currency"
    price_names: tuple[str, ...] = ()  # what the name of a row needs

    def currency_of(self, row: Any) -> str:
        return str(row.currency)

    def get_urls(self) -> list[Any]:
        page = path("prices/", self.admin_site.admin_view(self.prices), name=self._url_name())
        return [page, *super().get_urls()]

    def _url_name(self) -> str:
        return f"{self.opts.app_label}_{self.opts.model_name}_new_prices"

    def has_prices_permission(self, request: HttpRequest, object_id: Any = None) -> bool:
        return bool(self.has_change_permission(request))

    def _address(self, ids: Sequence[int]) -> str:
        query = urlencode({"row": list(ids)}, doseq=True)
        return f"{reverse(f'admin:{self._url_name()}')}?{query}"

    @admin.action(description=lazy("Change prices…"), permissions=["prices"])
    def change_prices(self, request: HttpRequest, rows: QuerySet[Any]) -> HttpResponse:
        ids = list(rows.values_list("pk", flat=True)[: MOST + 1])
        return HttpResponseRedirect(self._address(ids))

    @action(
        description=lazy("Change the price…"),
        icon="payments",
        permissions=["prices"],
        url_path="price",
    )
    def change_price(self, request: HttpRequest, object_id: str) -> HttpResponse:
        row = self.get_object(request, unquote(object_id))
        if row is None:
            raise Http404
        return HttpResponseRedirect(self._address([row.pk]))

    @action(
        description=lazy("Withdraw the next price…"),
        icon="undo",
        permissions=["prices"],
        url_path="withdraw-price",
    )
    def withdraw_price(self, request: HttpRequest, object_id: str) -> HttpResponse:
        row = self.get_object(request, unquote(object_id))
        if row is None or row.next_price_from is None:
            raise Http404
        show_waiting_changes(request)
        if request.method == "POST":
            try:
                self._set(request, {row.pk: (row.price, row.price)}, None)
                messages.success(request, _("The next price is withdrawn."))
            except InputProblem as problem:
                show_problem(request, problem)
            return HttpResponseRedirect(url_of(row))
        return page(
            self,
            request,
            "admin/confirm.html",
            obj=row,
            title=_("Withdraw the next price"),
            question=_("Withdraw the next price of %(row)s: %(next_price)s?")
            % {"row": row, "next_price": next_price(row, self.currency_of(row))},
            facts=[
                _("The price stays %(price)s.")
                % {"price": amount(row.price, self.currency_of(row))}
            ],
            button=_("Withdraw it"),
            back=url_of(row),
        )

    def get_actions_detail(self, request: HttpRequest, object_id: Any) -> list[Any]:
        """Leaves out `withdraw_price` if no next price is planned."""
        row = self.get_object(request, unquote(str(object_id)))
        actions = super().get_actions_detail(request, object_id)
        if row is not None and row.next_price_from is not None:
            return list(actions)
        name = "withdraw_price"
        return [one for one in actions if one.method.original_function_name != name]

    def prices(self, request: HttpRequest) -> HttpResponse:
        """Asks for new prices, shows old and new, and sets them once they are confirmed."""
        if not self.has_prices_permission(request):
            raise PermissionDenied
        ids = list(dict.fromkeys(int(one) for one in request.GET.getlist("row") if is_id(one)))
        rows = self.get_queryset(request).filter(pk__in=ids[:MOST])
        shown = sorted(rows, key=lambda row: ids.index(row.pk))
        if not shown:
            raise Http404
        if len(ids) > MOST and request.method == "GET":
            messages.warning(request, MORE_PRICES % {"most": MOST, "last": shown[-1]})
        show_waiting_changes(request)
        form = PricesForm(data_of_form(request), rows=shown)
        changes: list[dict[str, Any]] = []
        in_lists, waits = Changes([]), False
        if form.is_valid():
            new = form.new_prices(rows, self.currency_path)
            changes = self._changes(shown, new, read_costs(request, shown))
            if not changes:
                form.add_error(None, _("No price would change."))
            else:
                try:
                    in_lists = self._preview_lists(form, changes, request)
                    if "confirmed" in request.POST:
                        return self._save(form, changes, in_lists, request)
                    if in_lists.must_agree:
                        messages.warning(request, in_lists.must_agree)
                except LowPrices as low:
                    messages.warning(request, another_must_agree())
                    show_other_requests(request, low.low)
                    keep_page(request, low, form)
                    waits = True
                except InputProblem as problem:
                    form.add_error(None, str(problem))
                    changes = []
        return site_page(
            request,
            "admin/change_prices.html",
            opts=self.opts,
            title=_("Change regular prices"),
            form=form,
            rows=[
                {
                    "link": link_to(row),
                    "price": amount(row.price, self.currency_of(row)),
                    "next": next_price(row, self.currency_of(row)),
                    "field": form[_name(row)],
                }
                for row in shown
            ],
            has_next=any(row.next_price_from for row in shown),
            changes=changes,
            has_costs=any(one["has_cost"] for one in changes),
            in_lists=in_lists,
            above=_lists_above(changes),
            waits=waits,
            again=request.get_full_path().partition(f"&{ASKED}=")[0],
            back=list_url(self.model),
        )

    def _changes(
        self, rows: Sequence[Any], new: Mapping[int, Decimal | None], costs: Mapping[int, Decimal]
    ) -> list[dict[str, Any]]:
        """The rows whose price would change, with the price that the person sees."""
        changes = []
        for row in rows:
            before, after = row.price, new[row.pk]
            if before == after:
                continue
            changes.append(
                {
                    "row": row,
                    "name": _name(row),
                    "pair": f"{before} {after} {row.next_price} {row.next_price_from}",
                    "withdraws": next_price(row, self.currency_of(row)),
                    "before": before,
                    "after": after,
                    **price_change(before, after, costs.get(row.pk), self.currency_of(row)),
                }
            )
        return changes

    def _preview_lists(
        self, form: PricesForm, changes: list[dict[str, Any]], request: HttpRequest
    ) -> Changes:
        """The prices in price lists that would change, too, and who must agree. Raises
        InputProblem."""
        prices, starts_at = _prices(changes), form.cleaned_data["starts_at"]
        rows = self.model._default_manager
        with changing_prices():
            watched = watch_prices(rows.filter(pk__in=prices))
            terms = rehearse(watched, self._setting(request, prices, starts_at))
            must_agree = ""
            if "confirmed" not in request.POST:
                low = find_low_prices(watched.foresee(terms), watched.since, made=False)
                right = right_to_change(self.model)
                must_agree = who_must_agree(low, words=PRICES, right=right, actor=staff_of(request))
            return Changes(watched.in_lists(terms), must_agree)

    def _save(
        self,
        form: PricesForm,
        changes: list[dict[str, Any]],
        in_lists: Changes,
        request: HttpRequest,
    ) -> HttpResponse:
        """Sets the prices if they are those of the preview. Raises InputProblem."""
        seen = {f"seen-{one['name']}": one["pair"] for one in changes}
        if in_lists.changes:
            seen["seen"] = in_lists.digest
        if any(request.POST.get(name) != pair for name, pair in seen.items()):
            raise InputProblem(str(MOVED))
        starts_at = form.cleaned_data["starts_at"]
        number = self._set(request, _prices(changes), starts_at)
        values: dict[str, Any] = {"number": number, "time": time_cell(starts_at)}
        if starts_at and number == len(changes) == 1:
            done = _("%(row)s will cost %(price)s from %(time)s.")
            row = changes[0]["row"]
            price = amount(changes[0]["after"], self.currency_of(row))
            values |= {"row": row, "price": price}
        elif starts_at:
            done = ngettext(
                "%(number)s price will change from %(time)s.",
                "%(number)s prices will change from %(time)s.",
                number,
            )
        else:
            done = ngettext(
                "%(number)s price is new now.", "%(number)s prices are new now.", number
            )
        messages.success(request, done % values)
        return HttpResponseRedirect(list_url(self.model))

    def _set(self, request: HttpRequest, prices: Prices, starts_at: datetime | None) -> int:
        rows = self.model._default_manager.filter(pk__in=prices)
        save = self._setting(request, prices, starts_at)
        with two_people_set_low_prices(rows, actor=staff_of(request)) as about:
            about.foresee(rehearse(about.watched, save))
            number = save()
        _tell_agreement(request, about)
        return number

    def _setting(
        self, request: HttpRequest, prices: Prices, starts_at: datetime | None
    ) -> Callable[[], int]:
        rows = self.model._default_manager.select_related(*self.price_names)
        actor = staff_of(request)
        return partial(set_prices, rows=rows, prices=prices, starts_at=starts_at, actor=actor)

    @admin.display(description=lazy("price history"))
    def price_history(self, row: Any) -> str:
        """The newest changes of the price: when, from which time, old, new, and who."""
        history = row.price_changes
        column = history.field.attname
        changes = newest_changes(history.model.objects.all(), column, row.pk)[:SHOWN]
        start, old, new, who = _("Applies from"), _("Old"), _("New"), _("By")
        lines = format_html_join(
            "",
            '<tr><th scope="row">{}</th><td data-label="{}">{}</td><td data-label="{}">{}</td>'
            '<td data-label="{}">{}</td><td class="words" data-label="{}">{}</td></tr>',
            (
                (
                    time_cell(one.changed_at),
                    *(start, time_cell(one.starts_at, never=_("at once"))),
                    *(old, amount(one.before)),
                    *(new, amount(one.after)),
                    *(who, _who(one)),
                )
                for one in changes
            ),
        )
        if not lines:
            return EMPTY
        return format_html(
            "<table class=figures><thead><tr><th scope=col>{}</th><th scope=col>{}</th>"
            "<th scope=col>{}</th><th scope=col>{}</th><th class=words scope=col>{}</th></tr>"
            "</thead><tbody>{}</tbody></table>",
            *(_("Changed at"), start, old, new, who),
            lines,
        )


def _who(change: Any) -> str:
    """The names of the person who changed a price and of the one who had asked for it."""
    name = str(in_words(change.changed_by))
    if not change.asked_by:
        return name
    return _("%(staff)s, asked by %(asker)s") % {"staff": name, "asker": change.asked_by}


def _lists_above(changes: list[dict[str, Any]]) -> str:
    """Links to the price lists with a fixed price, now or later, above a price that falls."""
    above = Q()
    for row, before, after in ((one["row"], one["before"], one["after"]) for one in changes):
        if after is None or (before is not None and after >= before):
            continue
        targets = Q(topup_product_id=row.pk)
        if isinstance(row, Shelf):
            targets = Q(shelf=row.pk) | Q(product=row.product_id)
        above |= targets & Q(price__gt=after)
    if not above:
        return ""
    is_open = Q(valid_until=None) | Q(valid_until__gt=Now())
    entries = PriceListEntry.objects.filter(is_open, above).order_by("price_list")
    found = PriceList.objects.in_bulk(
        entries.values_list("price_list", flat=True).distinct()[: LISTS + 1]
    )
    links = [link_to(one) for one in list(found.values())[:LISTS]]
    words = format_html_join(", ", "{}", ((one,) for one in links))
    return format_html("{} {}", words, _("and more")) if len(found) > LISTS else words


def _prices(changes: list[dict[str, Any]]) -> Prices:
    return {one["row"].pk: (one["before"], one["after"]) for one in changes}


def price_and_next(row: Any, currency: str) -> str:
    """The price of a row of a list, and below it the planned one."""
    price, planned = amount(row.price, currency), next_price(row, currency)
    return format_html("{}<br><small>{}</small>", price, planned) if planned else price


def next_price(row: Any, currency: str) -> str:
    """The planned price of a row and its time; empty if there is none."""
    if row.next_price_from is None:
        return ""
    return _("%(price)s from %(time)s") % {
        "price": amount(row.next_price, currency),
        "time": time_cell(row.next_price_from),
    }
