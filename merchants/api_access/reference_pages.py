"""The References page: the account's own names for shelves."""

from typing import Any

from django.conf import settings
from django.contrib import messages
from django.http import (
    Http404,
    HttpRequest,
    HttpResponse,
    HttpResponseBase,
    HttpResponseRedirect,
)
from django.urls import reverse
from django.utils.http import urlencode
from django.utils.translation import gettext as _
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from accounts.form_fields import posted
from catalogue.models import Shelf
from catalogue.selectors import list_products
from core.api.pagination import Page, page_data
from core.files.doubts import Doubtful, doubt_id
from core.files.tables import TABLE_DOUBTS, WRONG_LINE, WRONG_TABLES
from core.files.workbook import WORKBOOK_DOUBTS, WRONG_WORKBOOKS
from core.http.body_limits import accepts_bodies_up_to
from core.inputs import InputProblem
from core.json_output import money_text
from core.texts import translate_stored
from merchants.api_access import references
from merchants.api_access.references import ReferenceTaken, ShelfIds
from merchants.frame.exports import send_table
from merchants.frame.forms import ReferenceFileForm, ShelfForm
from merchants.frame.pages import confirm, show
from merchants.models import Role
from merchants.people.access import Member, member_page

PER_PAGE = 50
MAX_PAGE = 100_000


@require_safe
@member_page()
def reference_list(request: HttpRequest, member: Member) -> HttpResponse:
    """Lists the catalogue as the API shows it, with a form for each shelf's reference."""
    return _show_list(request, member, request.GET)


@require_POST
@member_page(Role.DEVELOPER)
def set_reference(request: HttpRequest, member: Member) -> HttpResponse:
    """Sets one reference. Asks for confirmation before taking it from another shelf."""
    form = ShelfForm(request.POST)
    if not form.is_valid():
        raise Http404
    ids = ShelfIds(form.cleaned_data["product"], form.cleaned_data["variation"])
    shelf = references.shelf_on_sale(ids)
    if shelf is None:
        raise Http404
    typed = request.POST.get("reference", "").strip()
    try:
        references.set_reference(
            account=member.account,
            shelf=shelf,
            reference=typed,
            actor=member.user,
            move_from=form.cleaned_data["move_from"],
        )
    except ReferenceTaken as taken:
        return _ask_to_move(request, member, shelf, taken.holder)
    except InputProblem as problem:
        mistake = {"ids": ids, "typed": typed, "problem": str(problem)}
        return _show_list(request, member, request.POST, mistake=mistake)
    text = (
        _("Your reference for %(shelf)s is %(typed)s.") % {"shelf": shelf, "typed": typed}
        if typed
        else _("%(shelf)s has no reference now.") % {"shelf": shelf}
    )
    messages.success(request, text)
    return HttpResponseRedirect(_back(request.POST))


@require_safe
@member_page(heavy=True)
def export(request: HttpRequest, member: Member, format: str = "csv") -> HttpResponseBase:
    """The catalogue with the account's references. The page of imports reads the CSV file."""
    return send_table(
        request,
        member,
        name="references",
        format=format,
        columns=references.EXPORTED,
        rows=references.reference_rows(member.account),
        back="merchants:references",
    )


@accepts_bodies_up_to(references.MAX_FILE_BYTES + settings.MAX_BODY_BYTES)
@require_http_methods(["GET", "HEAD", "POST"])
@member_page(Role.DEVELOPER, heavy=True)
def import_file(request: HttpRequest, member: Member) -> HttpResponse:
    """Sets the references of a CSV or XLSX file, all of them or none."""
    form = ReferenceFileForm(posted(request), request.FILES or None)
    doubts: list[tuple[str, str]] = []
    if form.is_valid():
        file = form.cleaned_data["file"]
        try:
            set_, removed = references.import_references(
                account=member.account,
                data=file.read(references.MAX_FILE_BYTES + 1),
                actor=member.user,
                confirmed=request.POST.getlist("doubt"),
            )
        except Doubtful as problem:
            doubts = [
                (doubt_id(one), translate_stored(one, *WORKBOOK_DOUBTS, *TABLE_DOUBTS))
                for one in problem.doubts
            ]
            form.add_error("file", _("Nothing was changed: confirm each doubt first."))
        except InputProblem as problem:
            problems = [
                _capital(translate_stored(one, WRONG_LINE, *WRONG_WORKBOOKS, *WRONG_TABLES))
                for one in problem.problems
            ]
            more = [_("And %(more)s more.") % {"more": problem.more}] if problem.more else []
            form.add_error("file", [_("Nothing was changed."), *problems, *more])
        else:
            messages.success(
                request,
                _("References set: %(set)s. References removed: %(removed)s.")
                % {"set": set_, "removed": removed},
            )
            return HttpResponseRedirect(reverse("merchants:references"))
    return show(
        request,
        member,
        "merchants/import_references.html",
        title=_("Import references"),
        form=form,
        doubts=doubts,
        back=reverse("merchants:references"),
    )


def _capital(sentence: str) -> str:
    return sentence[:1].upper() + sentence[1:]


def _show_list(
    request: HttpRequest, member: Member, query: Any, mistake: dict[str, Any] | None = None
) -> HttpResponse:
    search = query.get("search", "")
    page = Page(page=_page_number(query.get("page")), per_page=PER_PAGE)
    products, total = list_products(account=member.account, page=page, search=search)
    rows = [
        {
            "product": product["id"],
            "variation": None if shelf is product else shelf["id"],
            "name": product["name"],
            "variation_name": None if shelf is product else shelf["name"],
            "currency": product["currency"],
            "available_stock": shelf["available_stock"],
            "step": shelf["quantity_step"],
            "price": None if shelf["price"] is None else money_text(shelf["price"]),
            "reference": shelf["merchant_reference"] or "",
        }
        for product in products
        for shelf in (product, *product["variations"])
    ]
    for row in rows:
        if mistake and mistake["ids"] == ShelfIds(row["product"], row["variation"]):
            row.update(reference=mistake["typed"], problem=mistake["problem"])
    return show(
        request,
        member,
        "merchants/references.html",
        title=_("Product references"),
        rows=rows,
        search=search,
        pagination=page_data([], page=page, total=total)["pagination"],
        previous_query=urlencode({"search": search, "page": page.page - 1}),
        next_query=urlencode({"search": search, "page": page.page + 1}),
    )


def _ask_to_move(request: HttpRequest, member: Member, shelf: Shelf, holder: Shelf) -> HttpResponse:
    data = request.POST.copy()
    data["move_from"] = str(holder.pk)
    names = ("product", "variation", "reference", "move_from", "page", "search")
    return confirm(
        request,
        member,
        title=_("Move a reference"),
        question=_("%(reference)s is your reference for %(holder)s. Move it to %(shelf)s?")
        % {"reference": data["reference"], "holder": holder, "shelf": shelf},
        facts=[
            _(
                "From then on, purchases of %(reference)s buy %(shelf)s. This includes purchases"
                " that your programs already make."
            )
            % {"reference": data["reference"], "shelf": shelf},
        ],
        hidden={name: data.get(name, "") for name in names},
        button=_("Move the reference"),
        danger=True,
        back=_back(data),
    )


def _back(query: Any) -> str:
    values = {name: query[name] for name in ("search", "page") if query.get(name)}
    return f"{reverse('merchants:references')}?{urlencode(values)}"


def _page_number(text: str | None) -> int:
    if not text or not (text.isascii() and text.isdigit()) or len(text) > 9:
        return 1
    return min(max(1, int(text)), MAX_PAGE)
