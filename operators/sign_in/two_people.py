"""Forms that two members of staff must save alike (operators/sign_in/second_person.py)."""

from __future__ import annotations

from typing import Any

from django import forms
from django.contrib import messages
from django.contrib.auth.models import User
from django.db.models import Model
from django.http import HttpRequest, HttpResponseRedirect, QueryDict
from django.template.response import TemplateResponse
from django.utils.translation import gettext as _

from operators.frame.base import staff_of
from operators.sign_in.asked_changes import (
    address_of,
    data_of_form,
    right_to_change,
    show_waiting_changes,
)
from operators.sign_in.second_person import ask_or_agree, lock_rows_of


class TwoPeopleForm(forms.ModelForm):  # type: ignore[type-arg]
    """A form that is valid once another person has saved the same within a day.

    unsaved: what it says to the first person.
    """

    # Set by TwoPeoplePage. `asked` is the data of the request with which the form is filled.
    actor: User
    page: dict[str, Any]
    asked: QueryDict | None = None
    waits = False
    right = ""  # of those who may agree; empty: to change such rows
    unsaved: str

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        for name in (self.asked or {}).keys() & self.fields.keys():
            widget = self.fields[name].widget
            self.initial[name] = widget.value_from_datadict(self.asked, {}, name)

    def full_clean(self) -> None:
        super().full_clean()  # first: what cannot be saved uses up no request
        if not self.is_valid():
            return
        what = self.needs_two()
        data: Any = self.data
        typed = {name: data.getlist(self.add_prefix(name)) for name in self.changed_data}
        if what and not ask_or_agree(
            what=what,
            about=self.about(),
            actor=self.actor,
            right=self.right or right_to_change(type(self.instance)),
            data={**self.page, "typed": typed, **self.data_of_change()},
        ):
            self.waits = True
            self.add_error(None, self.unsaved)

    def needs_two(self) -> str:
        """The change in words, for the request and the audit trail; empty if one person may make
        it. Called only when the form is valid."""
        raise NotImplementedError

    def data_of_change(self) -> dict[str, Any]:
        """Data of the change for pages (asked_changes.py), if its words are not enough."""
        return {}

    def about(self) -> User | None:
        """The person whose account changes, if there is one."""
        return None


class TwoPeoplePage:
    """Tells a TwoPeopleForm who fills it in. One person after the other saves."""

    model: type[Model]

    def changeform_view(
        self,
        request: HttpRequest,
        object_id: str | None = None,
        form_url: str = "",
        extra_context: dict[str, Any] | None = None,
    ) -> Any:
        """Shows what waits. A change that waits from now on is no error of the form."""
        button = {"add_button": _("Agree and save")} if show_waiting_changes(request) else {}
        answer = super().changeform_view(  # type: ignore[misc]
            request, object_id, form_url, {**(extra_context or {}), **button}
        )
        if request.method != "POST" or not isinstance(answer, TemplateResponse):
            return answer
        form = (answer.context_data or {})["adminform"].form
        if not getattr(form, "waits", False):
            return answer
        messages.info(request, form.unsaved)
        return HttpResponseRedirect(address_of(request))

    def get_object(self, request: HttpRequest, *args: Any, **kwargs: Any) -> Any:
        if request.method == "POST":
            lock_rows_of(self.model)
        return super().get_object(request, *args, **kwargs)  # type: ignore[misc]

    def get_form(
        self, request: HttpRequest, obj: Any = None, change: bool = False, **kwargs: Any
    ) -> Any:
        if request.method == "POST" and obj is None:
            lock_rows_of(self.model)
        form: Any = super().get_form(request, obj, change=change, **kwargs)  # type: ignore[misc]
        return type(
            form.__name__,
            (form,),
            {
                "actor": staff_of(request),
                "page": {"url": address_of(request)},
                "asked": data_of_form(request) if request.method == "GET" else None,
            },
        )
