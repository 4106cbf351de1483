"""The companies that statements name: of merchants, with what they propose, and our own."""

from __future__ import annotations

from collections.abc import Iterator
from hashlib import sha256
from io import BytesIO
from typing import Any, ClassVar

from django import forms
from django.contrib import admin, messages
from django.core.files.uploadedfile import UploadedFile
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import reverse
from django.utils.translation import gettext as _
from reportlab.lib.utils import ImageReader
from unfold.admin import ModelAdmin
from unfold.widgets import (
    UnfoldAdminSelectWidget,
    UnfoldAdminTextareaWidget,
    UnfoldAdminTextInputWidget,
)

from accounts.companies import LABELS, company_of, data_of, lines_of, named, save_company
from accounts.form_fields import CompanyForm, posted
from accounts.models import Account, Company, Logo, OwnCompany
from core.files.uploads import FORM_BYTES
from core.http.body_limits import accepts_bodies_up_to
from core.texts import lazy
from merchants.models import CompanyProposal
from merchants.people.company import decide_proposal, waiting_proposal
from operators.frame.base import BackOfficeAdmin, page, staff_of, url_of
from operators.sign_in.second_person import digest_of
from operators.sign_in.two_people import TwoPeopleForm, TwoPeoplePage

ONLY_ROW = 1
OWN_TEXTS = (*LABELS, "footer")
LOGO_BYTES, LOGO_PIXELS = 200_000, 2_000
WIDGETS = {
    **{name: UnfoldAdminTextInputWidget() for name in LABELS},
    "address": UnfoldAdminTextareaWidget(attrs={"rows": 4}),
    "country": UnfoldAdminSelectWidget(),
}


class StaffCompanyForm(CompanyForm):
    """The company of a merchant, with a note that only staff read."""

    class Meta(CompanyForm.Meta):
        model = Company
        fields = [*LABELS, "note"]
        labels = {**LABELS, "note": lazy("Note")}
        help_texts = {**CompanyForm.Meta.help_texts, "note": lazy("Only staff read it.")}
        widgets = {**WIDGETS, "note": UnfoldAdminTextareaWidget(attrs={"rows": 3})}


def edit_company(model_admin: ModelAdmin, request: HttpRequest, account: Account) -> HttpResponse:
    """The form with the company of an account."""
    form = StaffCompanyForm(posted(request), instance=company_of(account))
    if form.is_valid():
        data = {name: form.cleaned_data[name] for name in form.changed_data}
        if save_company(account=account, data=data, actor=staff_of(request)):
            messages.success(request, _("The company data are saved."))
        return HttpResponseRedirect(url_of(account))
    return page(
        model_admin,
        request,
        "admin/confirm.html",
        obj=account,
        title=_("Company data"),
        form=form,
        question=_("Which company is %(account)s?") % {"account": account},
        facts=[
            _("The next monthly statements name it. Issued statements stay as they are."),
        ],
        button=_("Save"),
        back=url_of(account),
    )


class AnswerForm(forms.Form):
    """The proposal that was read, and the answer to the merchant."""

    proposal = forms.IntegerField(widget=forms.HiddenInput)
    answer = forms.CharField(
        label=lazy("Answer to the merchant"),
        required=False,
        max_length=200,
        widget=UnfoldAdminTextInputWidget,
        help_text=lazy("The members of the account read it in an email."),
    )


def decide_company(model_admin: ModelAdmin, request: HttpRequest, account: Account) -> HttpResponse:
    """Shows the proposed data of an account beside its present data, and decides."""
    proposal = waiting_proposal(account)
    form = AnswerForm(posted(request), initial={"proposal": proposal and proposal.pk})
    if proposal is None or (form.is_valid() and form.cleaned_data["proposal"] != proposal.pk):
        messages.warning(request, _("This proposal no longer waits."))
        return HttpResponseRedirect(url_of(account))
    if form.is_valid():
        accept = "reject" not in request.POST
        done = decide_proposal(
            proposal=proposal,
            accept=accept,
            actor=staff_of(request),
            answer=form.cleaned_data["answer"],
        )
        if not done:
            messages.warning(request, _("This proposal no longer waits."))
        elif accept:
            messages.success(request, _("The company data are accepted."))
        else:
            messages.success(request, _("The proposal is rejected."))
        return HttpResponseRedirect(url_of(account))
    return page(
        model_admin,
        request,
        "admin/company_proposal.html",
        obj=account,
        title=_("Proposed company data"),
        form=form,
        proposal=proposal,
        rows=compare(company_of(account), proposal),
        button=_("Accept"),
        back=url_of(account),
    )


def compare(company: Company | None, proposal: CompanyProposal) -> list[dict[str, Any]]:
    """Each value before and after."""
    before, after = named(data_of(company)), named(data_of(proposal))
    return [
        {
            "label": label,
            "before": before[name],
            "after": after[name],
            "changed": before[name] != after[name],
        }
        for name, label in LABELS.items()
    ]


def show_company(account: Account) -> dict[str, Any]:
    """The section of the account's page."""
    company = company_of(account)
    return {
        "rows": lines_of(company),
        "note": company.note if company else "",
        "waits": waiting_proposal(account),
        "edit_url": url_of(account, "company"),
        "decide_url": url_of(account, "decide_company"),
    }


class OwnCompanyForm(TwoPeopleForm, CompanyForm):
    """Our own company, with a new logo. Two people save the same, because each of its texts can
    tell merchants where to send their money."""

    unsaved = lazy(
        "Not saved yet: each later statement would show it. Ask another administrator to save the"
        " same values, and the same new logo, within a day."
    )
    new_logo = forms.FileField(
        required=False,
        label=lazy("New logo"),
        widget=forms.FileInput(attrs={"accept": ".png,.jpg,.jpeg"}),
        help_text=lazy("A PNG or JPEG picture of at most 200 KB and 2,000 pixels a side."),
    )

    class Meta:
        model = OwnCompany
        fields = OWN_TEXTS
        labels = {**LABELS, "footer": lazy("Footer")}
        help_texts = {
            **CompanyForm.Meta.help_texts,
            "footer": lazy("At the bottom of each page of a statement. Up to three lines."),
        }
        field_classes = CompanyForm.Meta.field_classes
        widgets: ClassVar[dict[str, Any]] = {"country": WIDGETS["country"]}

    def needs_two(self) -> str:
        changes = list(self._changes(OwnCompany.objects.filter(pk=ONLY_ROW).first()))
        if not changes:
            return ""
        # Of all values, which are longer than a request. A request ends when the row has changed.
        words = "; ".join(f"{name}: “{before}” → “{after}”" for name, before, after in changes)
        return f"own company: {words.replace(chr(10), ' / ')[:400]}, {digest_of(changes)}"

    def _changes(self, stored: OwnCompany | None) -> Iterator[tuple[str, str, str]]:
        """The name of each changed value, before and after."""
        for name in OWN_TEXTS:
            before, after = getattr(stored, name, ""), self.cleaned_data[name]
            if before != after:
                yield name.replace("_", " "), before, after
        if picture := self.cleaned_data["new_logo"]:
            before = sha256(stored.logo.picture).hexdigest() if stored and stored.logo else ""
            yield "logo", before, sha256(picture).hexdigest()

    def clean_footer(self) -> str:
        return "\n".join(self.cleaned_data["footer"].splitlines())

    def clean_new_logo(self) -> bytes | None:
        file = self.cleaned_data["new_logo"]
        if not isinstance(file, UploadedFile):
            return None
        content: bytes = file.read()
        if len(content) > LOGO_BYTES or not _is_logo(content):
            raise forms.ValidationError(
                _("Choose a PNG or JPEG picture of at most 200 KB and 2,000 pixels a side.")
            )
        return content


def _is_logo(content: bytes) -> bool:
    """Whether a statement as PDF can show this picture."""
    if not content.startswith((b"\x89PNG\r\n\x1a\n", b"\xff\xd8\xff")):
        return False
    try:
        image = ImageReader(BytesIO(content))
        if max(image.getSize()) > LOGO_PIXELS:
            return False
        image.getRGBData()  # reads all of it
    except Exception:  # whatever the reader of pictures raises for a damaged one
        return False
    return True


@admin.register(OwnCompany)
class OwnCompanyAdmin(TwoPeoplePage, BackOfficeAdmin):
    """The only row, so its list leads to its form. The first save creates it."""

    form = OwnCompanyForm
    fields = (*OWN_TEXTS, "new_logo")
    change_form_before_template = "admin/about_own_company.html"

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def get_object(self, request: HttpRequest, object_id: str, from_field: Any = None) -> Any:
        stored = super().get_object(request, object_id, from_field)
        return stored or (OwnCompany(pk=ONLY_ROW) if object_id == str(ONLY_ROW) else None)

    def get_fields(self, request: HttpRequest, obj: Any = None) -> Any:
        edits = self.has_change_permission(request, obj)
        return self.fields if edits else self.fields[:-1]

    def changelist_view(self, request: HttpRequest, extra_context: Any = None) -> HttpResponse:
        if not self.has_view_or_change_permission(request):
            answer: HttpResponse = super().changelist_view(request, extra_context)  # refuses
            return answer
        return HttpResponseRedirect(reverse("admin:accounts_owncompany_change", args=[ONLY_ROW]))

    @accepts_bodies_up_to(LOGO_BYTES + FORM_BYTES)
    def change_view(
        self, request: HttpRequest, object_id: str, form_url: str = "", extra_context: Any = None
    ) -> HttpResponse:
        context = {"show_back_button": "", **(extra_context or {})}  # its list leads here
        answer: HttpResponse = super().change_view(request, object_id, form_url, context)
        return answer

    def save_model(self, request: HttpRequest, obj: Any, form: Any, change: Any) -> None:
        super().save_model(request, obj, form, change=not obj._state.adding)
        if picture := form.cleaned_data.get("new_logo"):
            obj.logo = Logo.objects.create(picture=picture)
            obj.save(update_fields=["logo"])
            # The audit trail names the row, and does not hold the picture.
            form.cleaned_data["new_logo"] = str(obj.logo)
