"""The words in which an app declares its part of the back office.

Each app has a module `backoffice` with one `BACK_OFFICE`. The back office collects them, so it
names no table, permission or page of another app itself (operators/declarations.py).
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from django.db.models import Model

from config.database.sealing import Context


class Role(StrEnum):
    """The groups of staff; the value is the group's name."""

    OPERATOR = "Operator"
    SENIOR_OPERATOR = "Senior operator"
    FINANCE = "Finance"
    CATALOGUE_MANAGER = "Catalogue manager"
    PLATFORM_MANAGER = "Platform manager"


class Section(StrEnum):
    """The sections of the menu, in the order in which they are shown."""

    TOP_UPS = "Top-ups"
    CATALOGUE = "Catalogue"
    MERCHANTS = "Merchants"
    MONEY = "Money"
    ORDERS = "Orders"
    TELEGRAM = "Telegram"
    SYSTEM = "System"


@dataclass(frozen=True)
class MenuEntry:
    """A link to the list of a model. `icon` is a name from Material Symbols."""

    section: Section
    title: str
    model: type[Model]
    icon: str


@dataclass(frozen=True)
class Check:
    """A sentence that holds for all data, and the query that finds where it does not.

    The query returns one text column: a sentence for each finding. `parameters` makes its
    parameters; a query without any may contain a plain `%`.
    """

    name: str
    sql: str
    parameters: Callable[[], dict[str, Any]] | None = None


@dataclass(frozen=True)
class Sealed:
    """A column of sealed values in a table with the primary key `id`.

    `reseal` counts its rows as `kind`. `reconcile --decrypt` calls `read` for each value, under
    the name `check`; `read` raises CannotOpen, ValueError or TypeError.
    """

    kind: str
    table: str
    column: str
    context: Context
    check: str
    read: Callable[[bytes], object]


@dataclass(frozen=True)
class BackOffice:
    """What one app declares for the back office. It names its own tables and those of lower apps.

    checks: what `reconcile` proves. A check that joins several apps belongs to the highest.
    warnings: what `reconcile` reports without failing: late, but not wrong.
    triggers, constraints: what must exist in the database besides what the models declare.
    counted: what `reconcile` counts, a name and its table.
    sealed: what `reseal` re-encrypts and `reconcile --decrypt` opens.
    permissions: what each role may do, as `app.codename`.
    menu: its entries, in the order in which they are shown.
    """

    checks: Sequence[Check] = ()
    warnings: Sequence[Check] = ()
    triggers: Sequence[str] = ()
    constraints: Sequence[str] = ()
    counted: Mapping[str, str] = field(default_factory=dict)
    sealed: Sequence[Sealed] = ()
    permissions: Mapping[Role, Sequence[str]] = field(default_factory=dict)
    menu: Sequence[MenuEntry] = ()


def full_access(*models: type[Model]) -> list[str]:
    """The permissions to view, add, change and delete rows of these models."""
    return [
        f"{model._meta.app_label}.{verb}_{model._meta.model_name}"
        for model in models
        for verb in ("view", "add", "change", "delete")
    ]
