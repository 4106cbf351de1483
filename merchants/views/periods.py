"""Filters by date, as forms. Days are those of UTC, as all times of the API are."""

from datetime import UTC, date, datetime, time, timedelta
from typing import Any

from django import forms
from django.core.validators import MaxValueValidator, MinValueValidator

# Wide enough for any ledger, and far from where dates cannot be computed with.
FIRST_DAY, LAST_DAY = date(2000, 1, 1), date(2199, 12, 31)


class DayField(forms.DateField):
    """A day, written as 2026-11-21 or picked."""

    def __init__(self, *, label: str) -> None:
        super().__init__(
            label=label,
            required=False,
            input_formats=["%Y-%m-%d"],
            widget=forms.DateInput(attrs={"type": "date"}, format="%Y-%m-%d"),
            error_messages={"invalid": "Write a day like 2026-11-21."},
            validators=[MinValueValidator(FIRST_DAY), MaxValueValidator(LAST_DAY)],
        )


class PeriodForm(forms.Form):
    """From one day to another, both included."""

    since = DayField(label="From (UTC)")
    until = DayField(label="To, inclusive (UTC)")

    def clean(self) -> dict[str, Any]:
        cleaned: dict[str, Any] = super().clean() or {}
        since, until = cleaned.get("since"), cleaned.get("until")
        if since and until and since > until:
            self.add_error("until", "This is before the first day.")
        return cleaned

    @property
    def begins(self) -> datetime | None:
        """The first moment, where there is one."""
        return _midnight(self.cleaned_data["since"])

    @property
    def ends(self) -> datetime | None:
        """The first moment after, where there is one."""
        midnight = _midnight(self.cleaned_data["until"])
        return midnight and midnight + timedelta(days=1)


def _midnight(day: date | None) -> datetime | None:
    return datetime.combine(day, time(), UTC) if day else None
