"""Forms that filter by date. Days are those of the reader's time zone."""

from contextlib import suppress
from datetime import date, datetime, time, timedelta
from typing import Any

from django import forms
from django.core.validators import MaxValueValidator, MinValueValidator
from django.utils import timezone
from django.utils.translation import gettext as _

from core.formats import local_day
from core.texts import lazy

# Wide enough for any ledger; dates beyond could overflow when a day is added.
FIRST_DAY, LAST_DAY = date(2000, 1, 1), date(2199, 12, 31)


class DayField(forms.DateField):
    """A day, written like 2026-11-21 or 21.11.2026, or picked from a calendar."""

    def __init__(self, *, label: str) -> None:
        super().__init__(
            label=label,
            required=False,
            input_formats=["%Y-%m-%d", "%d.%m.%Y"],
            widget=forms.DateInput(attrs={"type": "date"}, format="%Y-%m-%d"),
            validators=[MinValueValidator(FIRST_DAY), MaxValueValidator(LAST_DAY)],
        )

    def to_python(self, value: Any) -> date | None:
        try:
            return super().to_python(value)
        except forms.ValidationError:
            example = {"day": local_day(date(2026, 11, 21))}
            raise forms.ValidationError(
                _("Enter a day like %(day)s.") % example, code="invalid"
            ) from None

    def prepare_value(self, value: Any) -> Any:
        with suppress(forms.ValidationError):  # a calendar shows 2026-11-21 alone
            return self.to_python(value)
        return value


class PeriodForm(forms.Form):
    """A period of whole days; the last one is included. Both ends are optional."""

    since = DayField(label=lazy("From"))
    until = DayField(label=lazy("To, inclusive"))

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        for name in ("since", "until"):
            field = self.fields[name]
            field.label = f"{field.label} ({timezone.get_current_timezone_name()})"

    def clean(self) -> dict[str, Any]:
        cleaned: dict[str, Any] = super().clean() or {}
        since, until = cleaned.get("since"), cleaned.get("until")
        if since and until and since > until:
            self.add_error("until", _("Choose a day on or after the first day."))
        return cleaned

    @property
    def begins(self) -> datetime | None:
        """The first moment of the period; None if it has no beginning."""
        return _midnight(self.cleaned_data["since"])

    @property
    def ends(self) -> datetime | None:
        """The first moment after the period; None if it has no end."""
        until = self.cleaned_data["until"]
        return _midnight(until and until + timedelta(days=1))


def _midnight(day: date | None) -> datetime | None:
    return timezone.make_aware(datetime.combine(day, time())) if day else None
