"""Proofs of delivery at the desk: adding one to a delivered order, and downloading its file."""

from __future__ import annotations

from typing import Any
from uuid import uuid4

from django import forms
from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.core.files.uploadedfile import UploadedFile
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.utils.text import format_lazy
from django.utils.translation import gettext as _
from unfold.widgets import UnfoldAdminTextInputWidget

from accounts.form_fields import posted
from core.files.uploads import ACCEPTED, FORM_BYTES, MAX_BYTES, check_file, download
from core.http.body_limits import accepts_bodies_up_to
from core.inputs import InputProblem
from core.texts import lazy
from operators.frame.base import RecordAdmin, page, staff_of, url_of
from topups.fulfilment.fulfilments import MoveRefused, Operator
from topups.fulfilment.proofs import NewProof, add_proof, clean_number, proofs_of
from topups.fulfilment.transitions import FULFIL
from topups.models import (
    TRANSACTION_NUMBER_LENGTH,
    Channel,
    DeliveryFile,
    Fulfilment,
    FulfilmentStatus,
)

MOST_BYTES = MAX_BYTES + FORM_BYTES  # a form with a file, as a browser sends it


class ProofFields(forms.Form):
    """The proof of a delivery. Both fields may stay empty."""

    transaction_number = forms.CharField(
        required=False,
        max_length=TRANSACTION_NUMBER_LENGTH,
        label=lazy("Transaction number"),
        widget=UnfoldAdminTextInputWidget,
        help_text=lazy("The merchant reads it on the order's page. Never write a code here."),
    )
    file = forms.FileField(
        required=False,
        label=lazy("Picture or PDF"),
        widget=forms.FileInput(attrs={"accept": ACCEPTED}),
        help_text=format_lazy(
            lazy("A PNG or JPEG picture or a PDF of at most {size} MB. The merchant downloads it."),
            size=MAX_BYTES // 1_000_000,
        ),
    )

    def clean_transaction_number(self) -> str:
        try:
            return clean_number(self.cleaned_data["transaction_number"])
        except InputProblem as problem:
            raise forms.ValidationError(str(problem)) from None

    def clean_file(self) -> tuple[str, bytes] | None:
        """The name and the content."""
        file = self.cleaned_data["file"]
        if not isinstance(file, UploadedFile):
            return None
        name, content = file.name or "", file.read()
        try:
            check_file(name, content)
        except InputProblem as problem:
            raise forms.ValidationError(str(problem)) from None
        return name, content


class ProofForm(ProofFields):
    """A proof of an order that is delivered already. `token` is a new one for each form shown."""

    token = forms.UUIDField(initial=uuid4, widget=forms.HiddenInput)


class DeskProofs(RecordAdmin):
    """The proofs on the page of an order, and the form that adds one."""

    change_form_after_template = "admin/delivery_proofs.html"

    def has_fulfil_permission(self, request: HttpRequest) -> bool:
        return staff_of(request).has_perm(FULFIL)

    def proofs_context(self, request: HttpRequest, fulfilment: Fulfilment) -> dict[str, Any]:
        """For admin/delivery_proofs.html. Empty if the order is not delivered, or if the reader may
        not see it."""
        if fulfilment.status != FulfilmentStatus.COMPLETED or not self.has_view_permission(request):
            return {}
        adds = url_of(fulfilment, "add_proof")
        return {
            "delivery": fulfilment,
            "proofs": proofs_of(fulfilment),
            "add_proof_url": adds if self.has_fulfil_permission(request) else "",
        }

    @accepts_bodies_up_to(MOST_BYTES)
    def add_proof(self, request: HttpRequest, pk: int) -> HttpResponse:
        """Adds a proof to a delivered order."""
        fulfilment = self.find_order(request, pk)
        if not self.has_fulfil_permission(request):
            raise PermissionDenied
        if fulfilment.status != FulfilmentStatus.COMPLETED:
            messages.error(request, _("Only a delivered order has a proof of delivery."))
            return HttpResponseRedirect(url_of(fulfilment))
        form = ProofForm(posted(request), request.FILES or None)
        if form.is_valid():
            operator = Operator(user=staff_of(request), channel=Channel.ADMIN)
            try:
                add_proof(
                    fulfilment=fulfilment, operator=operator, proof=NewProof(**form.cleaned_data)
                )
            except (InputProblem, MoveRefused) as problem:
                messages.error(request, str(problem))
            else:
                messages.success(request, _("The proof is added."))
                return HttpResponseRedirect(url_of(fulfilment))
        return page(
            self,
            request,
            "admin/confirm.html",
            obj=fulfilment,
            form=form,
            title=_("Add a proof of delivery"),
            question=_("Add a proof that order %(order)s was delivered.") % {"order": fulfilment},
            facts=[_("The merchant sees it. It cannot be changed: correct it by another one.")],
            button=_("Add"),
            back=url_of(fulfilment),
        )

    def send_proof(self, request: HttpRequest, pk: int, proof: int) -> HttpResponse:
        """Sends the file of a proof as a download."""
        if not self.has_view_permission(request):
            raise PermissionDenied
        file = DeliveryFile.objects.filter(proof=proof, proof__fulfilment=pk).first()
        if file is None:
            raise Http404
        return download(file)

    def find_order(self, request: HttpRequest, pk: int) -> Fulfilment:
        """The order of this number. Raises Http404."""
        fulfilment = self.get_object(request, str(pk))
        if not isinstance(fulfilment, Fulfilment):
            raise Http404
        return fulfilment
