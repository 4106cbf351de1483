"""The lines of the System page: the state of each component that the apps declare.

The same gauges feed Prometheus, and a line is red exactly while its alert rule would fire, apart
from what nobody has set up in a shop that has just begun to sell.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from enum import IntEnum
from functools import cache
from math import floor, inf

from django.contrib.auth.models import User
from django.db.migrations.recorder import MigrationRecorder
from django.template.defaultfilters import filesizeformat
from django.utils import timezone
from django.utils.translation import gettext as _

from core.backoffice.declarations import Component, Unit
from core.backoffice.registry import back_offices
from core.formats import local_number
from core.texts import lazy
from operators.frame.desk_summary import age_in_words
from operators.upkeep.monitoring.gauges import Reading
from orders.models import Order

LABELS = {
    "copy": lazy("copy"),
    "key_id": lazy("key ID"),
    "kind": lazy("kind"),
    "process": lazy("process"),
    "slot": lazy("slot"),
}  # of gauges, in words
SET_UP_WITHIN = timedelta(days=1)  # of the installation and of the first order
COMPONENTS = [component for app in back_offices() for component in app.components]


class Health(IntEnum):
    """The state of a component; the worst first."""

    RED = 0
    AMBER = 1
    UNKNOWN = 2
    NOT_SET_UP = 3
    GREEN = 4


@dataclass(frozen=True)
class Status:
    """The status of a component: its worst value in words, and the labels of that value."""

    component: Component
    health: Health
    value: str
    where: str = ""


def lines_for(user: User, readings: Iterable[Reading]) -> list[Status]:
    """The lines that this person may see, the worst first."""
    by_name = {reading.name: reading for reading in readings}
    sells = cache(_sells)  # one answer for all lines
    lines = [
        line
        for component in COMPONENTS
        if may_see(user, component)
        for line in [_line(component, by_name, sells)]
        if line is not None
    ]
    return sorted(lines, key=lambda line: line.health)


def may_see(user: User, component: Component) -> bool:
    """Whether this person may view the rows that the line is about."""
    meta = component.model._meta
    return user.has_perm(f"{meta.app_label}.view_{meta.model_name}")


def judge(component: Component, value: float) -> Health:
    """Whether the value is beyond the limits of the component."""
    sign = -1 if component.low_is_bad else 1
    if value * sign > component.red * sign:
        return Health.RED
    return Health.AMBER if value * sign > component.amber * sign else Health.GREEN


def _line(
    component: Component, by_name: Mapping[str, Reading], sells: Callable[[], bool]
) -> Status | None:
    reading = by_name.get(component.gauge)
    if reading is None:
        return Status(component, Health.UNKNOWN, _("not known"))
    chosen_labels = component.labels.items()
    values = []
    for labels, value in reading.samples:
        names = dict(zip(reading.labels, labels, strict=True))
        if chosen_labels <= names.items():
            values.append((value, _subject(names, component)))
    if not values:
        return None
    is_nowhere = all(value == inf for _labels, value in reading.samples)
    if component.set_up_later and is_nowhere and not sells():
        return Status(component, Health.NOT_SET_UP, _("never"))
    value, where = min(values) if component.low_is_bad else max(values)
    words = in_words(value, component.unit)
    first = by_name.get(component.begins_with)
    if first is not None and not first.samples:
        words = _("none yet; installed %(age)s ago") % {"age": words}
    return Status(component, judge(component, value), words, where)


def _sells() -> bool:
    """Whether the installation and the first order are both older than SET_UP_WITHIN.

    The orders of demo data are older than the installation.
    """
    first = Order.objects.order_by("pk").values_list("created_at", flat=True).first()
    if first is None:
        return False
    installed = MigrationRecorder.Migration.objects.earliest("applied").applied
    return bool(max(first, installed) < timezone.now() - SET_UP_WITHIN)


def _subject(names: Mapping[str, str], component: Component) -> str:
    """The subject of a value, such as the name of a product; empty if that is clear."""
    if "product" in names:
        return names["product"]
    others = [name for name in names if name not in component.labels]
    return ", ".join(f"{LABELS.get(name, name.replace('_', ' '))} {names[name]}" for name in others)


def in_words(value: float, unit: Unit) -> str:
    """`40 s`, `7 min`, `1.5 days`, `1,234`; `never` for an infinite time, `none` for zero."""
    if value == inf:
        return _("never")
    if value == 0 and unit in (Unit.COUNT, Unit.SECONDS):
        return _("none")
    match unit:
        case Unit.SECONDS if value < 60:
            return f"{value:.0f} s"
        case Unit.SECONDS:
            return age_in_words(timedelta(seconds=value))
        case Unit.UP:
            return _("answers") if value else _("does not answer")
        case Unit.DAYS:
            days = {"number": local_number(floor(10 * value) / 10, 1)}  # as the first page
            return _("%(number)s days") % days if value else _("sold out")
        case Unit.BYTES:
            return str(filesizeformat(value))
        case _:
            return local_number(value)
