"""Form fields and helpers that the back office and the merchant site share."""

from __future__ import annotations

from typing import Any
from uuid import uuid4

from django import forms
from django.http import HttpRequest, QueryDict

from accounts.addresses import clean_networks
from core.texts import lazy


def posted(request: HttpRequest) -> QueryDict | None:
    """The data of a POST for a form, even if empty; None for other methods, so the form stays
    unbound."""
    return request.POST if request.method == "POST" else None


class SecondFactorCodeField(forms.CharField):
    """A code of a second factor. Cleans to lower case without spaces."""

    def __init__(self, **kwargs: Any) -> None:
        kwargs.setdefault("label", lazy("Code"))
        kwargs.setdefault(
            "help_text", lazy("Enter the code that your app shows, or one of your backup codes.")
        )
        super().__init__(max_length=20, **kwargs)

    def clean(self, value: Any) -> str:
        return str(super().clean(value)).replace(" ", "").lower()


class FormIdField(forms.UUIDField):
    """Identifies one form as it was shown, so that sending it twice has one effect.

    Not required: a page that was open during a deployment may lack it.
    """

    def __init__(self) -> None:
        super().__init__(required=False, widget=forms.HiddenInput, initial=uuid4)


class NetworksField(forms.CharField):
    """Addresses and networks, one per line. Cleans to a list of normalized networks."""

    widget = forms.Textarea(attrs={"rows": 4})

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(
            required=False,
            help_text=lazy(
                "One address or network per line, such as 203.0.113.7 or 2001:db8::/32."
                " Empty: calls are accepted from anywhere."
            ),
            **kwargs,
        )

    def prepare_value(self, value: Any) -> Any:
        return "\n".join(value) if isinstance(value, list) else value

    def clean(self, value: Any) -> list[str]:
        lines = [line.strip(" \t,;") for line in super().clean(value).splitlines()]
        return clean_networks(line for line in lines if line)

    def has_changed(self, initial: Any, data: Any) -> bool:
        return super().has_changed(self.prepare_value(initial), data)
