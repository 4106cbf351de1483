"""Days and times in files. They begin with the year, so they mean the same everywhere."""

import re
from datetime import UTC, date, datetime

from django.utils.translation import gettext_noop

from core.inputs import InputProblem

DAY = r"[0-9]{4}-[0-9]{2}-[0-9]{2}"
HOUR = r"[0-9]{2}:[0-9]{2}"
TIME = rf"{DAY}([T ]{HOUR}(:[0-9]{{2}}(\.[0-9]{{1,6}})?)?(Z|[+-]{HOUR})?)?"
SHOWN = 40  # characters

# What is wrong with a day or a time. Imports store it in English, and pages translate it.
NO_DAY = gettext_noop("%(text)s is not a day: write it like 2026-12-31")
NO_TIME = gettext_noop(
    "%(text)s is not a time: write it like 2026-12-31 18:30, in UTC, or like 2026-12-31"
)
WRONG_TIMES = (NO_DAY, NO_TIME)


def read_day(text: str) -> date:
    """The day. Raises InputProblem."""
    if re.fullmatch(DAY, text):
        try:
            return date.fromisoformat(text)
        except ValueError:  # such as the 31st of June
            pass
    raise InputProblem(NO_DAY % {"text": text[:SHOWN]})


def read_time(text: str) -> datetime:
    """The time, in UTC. A day is its beginning. Raises InputProblem."""
    if re.fullmatch(TIME, text):
        try:
            time = datetime.fromisoformat(text)
            return time.replace(tzinfo=UTC) if time.tzinfo is None else time.astimezone(UTC)
        except (ValueError, OverflowError):
            pass
    raise InputProblem(NO_TIME % {"text": text[:SHOWN]})
