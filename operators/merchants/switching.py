"""Switching an account or a client off and on: both ask first, and for a reason."""

from __future__ import annotations

from typing import Any

from django import forms
from django.contrib import messages
from django.contrib.admin.utils import unquote
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.utils.translation import gettext as _
from unfold.admin import ModelAdmin
from unfold.decorators import action
from unfold.enums import ActionVariant
from unfold.widgets import UnfoldAdminTextInputWidget

from accounts.form_fields import posted
from accounts.models import Account, ApiClient
from core.database.columns import NOTE_LENGTH
from core.texts import lazy
from operators.frame.base import page, url_of

Switched = Account | ApiClient


class SwitchForm(forms.Form):
    reason = forms.CharField(
        label=lazy("Reason"),
        max_length=NOTE_LENGTH,
        widget=UnfoldAdminTextInputWidget,
        help_text=lazy("The audit trail keeps it. The merchant does not see it."),
    )


class SwitchPage(ModelAdmin):
    """The page of a row that is switched off and on with a button, never with its form."""

    actions_detail: Any = ("switch_off", "switch_on")

    def switch(self, obj: Any, *, on: bool, request: HttpRequest, reason: str) -> None:
        """Calls the service that switches."""
        raise NotImplementedError

    def effects_of_switch(self, obj: Any, *, on: bool) -> list[str]:
        """Sentences for the page that asks."""
        raise NotImplementedError

    def get_readonly_fields(self, request: HttpRequest, obj: Any = None) -> Any:
        fields = super().get_readonly_fields(request, obj)
        return (*fields, "enabled") if obj else fields

    def get_actions_detail(self, request: HttpRequest, object_id: Any) -> list[Any]:
        """Leaves out the switch that would change nothing."""
        obj = self.get_object(request, unquote(str(object_id)))
        if obj is None:
            return []
        useless = "switch_on" if obj.enabled else "switch_off"
        actions = super().get_actions_detail(request, object_id)
        return [one for one in actions if one.method.original_function_name != useless]

    def has_switch_permission(self, request: HttpRequest, object_id: Any = None) -> bool:
        return bool(self.has_change_permission(request))

    @action(
        description=lazy("Switch off…"),
        icon="power_settings_new",
        permissions=["switch"],
        url_path="switch-off",
        variant=ActionVariant.WARNING,
    )
    def switch_off(self, request: HttpRequest, object_id: str) -> HttpResponse:
        return self._ask_and_switch(request, object_id, on=False)

    @action(
        description=lazy("Switch on…"),
        icon="power_settings_new",
        permissions=["switch"],
        url_path="switch-on",
    )
    def switch_on(self, request: HttpRequest, object_id: str) -> HttpResponse:
        return self._ask_and_switch(request, object_id, on=True)

    def _ask_and_switch(self, request: HttpRequest, object_id: str, *, on: bool) -> HttpResponse:
        obj: Switched | None = self.get_object(request, unquote(object_id))
        if obj is None:
            raise Http404
        if obj.enabled == on:
            useless = (
                _("%(name)s is already switched on.")
                if on
                else _("%(name)s is already switched off.")
            )
            messages.warning(request, useless % {"name": obj})
            return HttpResponseRedirect(url_of(obj))
        form = SwitchForm(posted(request))
        if form.is_valid():
            self.switch(obj, on=on, request=request, reason=form.cleaned_data["reason"])
            done = _("%(name)s is switched on.") if on else _("%(name)s is switched off.")
            messages.success(request, done % {"name": obj})
            return HttpResponseRedirect(url_of(obj))
        title = _("Switch on") if on else _("Switch off")
        question = _("Switch %(name)s on?") if on else _("Switch %(name)s off?")
        return page(
            self,
            request,
            "admin/confirm.html",
            obj=obj,
            title=title,
            form=form,
            question=question % {"name": obj},
            facts=self.effects_of_switch(obj, on=on),
            button=title,
            danger=not on,
            back=url_of(obj),
        )
