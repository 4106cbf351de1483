"""The References page: the account's own names for shelves."""

from datetime import timedelta
from typing import Any

from django.conf import settings
from django.contrib import messages
from django.core import signing
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
from catalogue.selectors import is_bought_by_variation, list_products
from core.api.pagination import Page, page_data
from core.files.doubts import Doubtful, doubt_id, refuse_doubts
from core.files.table_files import CONTENT_TYPES
from core.files.tables import TABLE_DOUBTS, WRONG_LINE, WRONG_TABLES
from core.files.workbook_sentences import WORKBOOK_DOUBTS, WRONG_WORKBOOKS
from core.formats import local_amount
from core.http.body_limits import accepts_bodies_up_to
from core.inputs import InputProblem
from core.texts import translate_stored
from merchants.api_access import references
from merchants.api_access.references import ReferenceTaken, ShelfIds
from merchants.frame.exports import send_table
from merchants.frame.forms import ReferenceFileForm, ShelfForm
from merchants.frame.pages import confirm, show
from merchants.models import Role
from merchants.people.access import Member, member_page

PER_PAGE = 50
SHOWN = 50  # changes of a file
CHECKED_FOR = timedelta(days=1)
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
    """The catalogue with the account's references. The page of imports reads the file."""
    return send_table(
        request,
        member,
        name="references",
        format=format,
        columns=references.EXPORTED,
        rows=references.reference_rows(member.account),
        is_imported=True,
        back="merchants:references",
    )


# The text that confirms a file is longer than the file.
@accepts_bodies_up_to(2 * references.MAX_FILE_BYTES + settings.MAX_BODY_BYTES)
@require_http_methods(["GET", "HEAD", "POST"])
@member_page(Role.DEVELOPER, heavy=True)
def import_file(request: HttpRequest, member: Member) -> HttpResponse:
    """Sets the references of a CSV or XLSX file, all of them or none, once the member has confirmed
    the changes."""
    if "checked" in request.POST:
        return _confirm_changes(request, member)
    form = ReferenceFileForm(posted(request), request.FILES or None)
    if form.is_valid():
        try:
            data = form.cleaned_data["file"].read(references.MAX_FILE_BYTES + 1)
            checked = references.check_references(account=member.account, data=data)
        except InputProblem as problem:
            form.add_error("file", [_("Nothing was changed."), *_in_words(problem)])
        else:
            if not checked.changes:
                return _report(request, checked.changes)
            return _show_changes(request, member, checked)
    return show(
        request,
        member,
        "merchants/import_references.html",
        title=_("Import references"),
        form=form,
        back=reverse("merchants:references"),
    )


def _confirm_changes(request: HttpRequest, member: Member) -> HttpResponse:
    """Makes the changes that the page of a checked file has listed, or sends them as a file."""
    try:
        checked: dict[str, Any] = signing.loads(
            request.POST["checked"], salt=_salt(member), max_age=CHECKED_FOR
        )
    except signing.BadSignature:  # of another person, or too old
        messages.warning(request, _("Nothing was changed. Choose the file again."))
        return HttpResponseRedirect(reverse("merchants:import_references"))
    names = {int(pk): reference for pk, reference in checked["references"]}
    found = checked["found"]
    try:
        if "download" in request.POST:
            changes = references.changes_of(member.account, names)
            return HttpResponse(
                references.changes_as_csv(changes),
                content_type=CONTENT_TYPES["csv"],
                headers={"Content-Disposition": 'attachment; filename="changes.csv"'},
            )
        try:
            refuse_doubts(found["doubts"], request.POST.getlist("doubt"))
        except Doubtful:
            warning = _("Nothing was changed: confirm each doubt first.")
            changes = references.changes_of(member.account, names)
        else:
            made = references.import_references(
                account=member.account,
                references=names,
                digest=checked["digest"],
                actor=member.user,
            )
            return _report(request, made)
    except references.ChangesMoved as moved:
        warning = _("Your references have changed meanwhile. Nothing was changed.")
        changes = moved.changes
    except InputProblem as problem:
        messages.warning(request, " ".join([_("Nothing was changed."), *_in_words(problem)]))
        return HttpResponseRedirect(reverse("merchants:import_references"))
    messages.warning(request, warning)
    return _show_changes(request, member, references.CheckedReferences(changes=changes, **found))


def _show_changes(
    request: HttpRequest, member: Member, checked: references.CheckedReferences
) -> HttpResponse:
    """The list of changes, and a form that makes them."""
    rows = references.list_changes(checked.changes)
    set_, removed = references.count(checked.changes)
    found = {"unchanged": checked.unchanged, "doubts": checked.doubts, "sheet": checked.sheet}
    signed = {
        "references": [(pk, after) for pk, (_before, after) in checked.changes.items()],
        "digest": references.digest_of(checked.changes),
        "found": found,
    }
    return show(
        request,
        member,
        "merchants/import_references.html",
        title=_("Import references"),
        checked=signing.dumps(signed, salt=_salt(member), compress=True),
        sheet=checked.sheet,
        counts={"set": set_, "removed": removed, "unchanged": checked.unchanged},
        changes=rows[:SHOWN],
        more_changes=len(rows[SHOWN:]),
        doubts=[
            (doubt_id(one), translate_stored(one, *WORKBOOK_DOUBTS, *TABLE_DOUBTS))
            for one in checked.doubts
        ],
        back=reverse("merchants:references"),
    )


def _report(request: HttpRequest, changes: references.Changes) -> HttpResponse:
    set_, removed = references.count(changes)
    messages.success(
        request,
        _("References set: %(set)s. References removed: %(removed)s.")
        % {"set": set_, "removed": removed},
    )
    return HttpResponseRedirect(reverse("merchants:references"))


def _salt(member: Member) -> str:
    return f"merchants.references {member.account.pk} {member.user.pk}"


def _in_words(problem: InputProblem) -> list[str]:
    """The sentences of a problem, in the reader's language."""
    more = [_("And %(more)s more.") % {"more": problem.more}] if problem.more else []
    return [
        *(
            _capital(translate_stored(one, WRONG_LINE, *WRONG_WORKBOOKS, *WRONG_TABLES))
            for one in problem.problems
        ),
        *more,
    ]


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
            "price": None if shelf["price"] is None else local_amount(shelf["price"]),
            "reference": shelf["merchant_reference"] or "",
            "by_variation": shelf is product and is_bought_by_variation(product),
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
