"""The types of what each app declares for the back office, as `BACK_OFFICE` in its `backoffice.py`.

`registry` collects them, so the back office itself names no table, permission or page of another
app.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Protocol

from django.db.models import Model, QuerySet
from django.utils.translation import gettext

from core.backoffice.staff_roles import StaffRole
from core.database.sealing import Context
from core.texts import gettext_noop

if TYPE_CHECKING:
    from django.contrib.auth.models import User

# Rows by their model's label, such as {"accounts.account": ["7"]}.
Objects = Mapping[str, Sequence[str]]


class Section(StrEnum):
    """The sections of the menu, in the order in which they are shown. Each person's own work comes
    first (operators/admin/menu.py), and the sections in FOLDED are folded in a long menu."""

    ORDERS = gettext_noop("Orders")
    TOP_UPS = gettext_noop("Top-ups")
    CATALOGUE = gettext_noop("Catalogue")
    MERCHANTS = gettext_noop("Merchants")
    MONEY = gettext_noop("Money")
    SYSTEM = gettext_noop("System")
    CODES = gettext_noop("Codes and lists")
    REPORTS = gettext_noop("Reports")
    RECORDS = gettext_noop("Records")
    TELEGRAM = "Telegram"
    SETTINGS = gettext_noop("Settings")

    @property
    def label(self) -> str:
        """Its heading, in the reader's language."""
        return gettext(self.value)


FOLDED = (Section.CODES, Section.REPORTS, Section.RECORDS, Section.TELEGRAM, Section.SETTINGS)


@dataclass(frozen=True)
class MenuEntry:
    """A link to the list of a model. `icon` is a name from Material Symbols.

    `page` names a URL that the link leads to instead, and `query` limits the list. People who may
    view the model see the link.
    """

    section: Section
    title: str
    model: type[Model]
    icon: str
    page: str = ""
    query: str = ""


@dataclass(frozen=True)
class MenuPage:
    """A link to a page that is no list of a model, for the staff who may open it.

    `page` names its URL. The links are the first of their section.
    """

    section: Section
    title: str
    icon: str
    page: str
    opens: Callable[[User], bool]


@dataclass(frozen=True)
class Check:
    """A rule that all data must follow, and the query that finds the exceptions.

    `name` is the rule as a sentence. It is stored in English, and pages translate it
    (`gettext_noop`). The query returns one text column with a sentence for each
    exception. `parameters` returns the query's parameters; a query without them may contain `%`.

    A check of tables that grow with history can look at the rows of a period: by comments in its
    SQL, or by `of_period` (core/backoffice/periods.py). One that cannot, and reads much, is
    `weekly`. The nightly run makes all others every night.
    """

    name: str
    sql: str
    parameters: Callable[[], dict[str, Any]] | None = None
    of_period: str = ""
    weekly: bool = False


@dataclass(frozen=True)
class Sealed:
    """A column of sealed values in a table with the primary key `id`.

    `row`, called with the columns of `identity`, returns the row that a value is bound to. `reseal`
    reports the number of its rows under `kind`. `reconcile --decrypt` calls `read` for each value
    and its row, and reports failures under `check`. `read` raises CannotOpen, ValueError or
    TypeError. `at_once`: how many values fit into the memory of `reseal` together.
    """

    kind: str
    table: str
    column: str
    context: Context
    identity: Sequence[str]
    row: Callable[..., bytes]
    check: str
    read: Callable[[bytes, bytes], object]
    at_once: int = 1000


@dataclass(frozen=True)
class DecryptCheck:
    """A check of `reconcile --decrypt` that SQL alone cannot make, because it needs the keys.

    The first column of the query names a row. `holds` gets the other columns and returns whether
    they agree.
    """

    name: str
    sql: str
    holds: Callable[..., bool]


@dataclass(frozen=True)
class Gauges:
    """Gauges that one read fills, for Prometheus and for the System page.

    meanings: what each gauge says, by its name.
    read: a query, or a function for what SQL cannot say. Each row has the values of `labels`, then
        one value for each gauge. NULL leaves the gauge out.
    parameters: returns the query's parameters; a query without them may contain `%`.
    labels: the labels that distinguish the rows. Their values must be few, and hold no secret and
        no personal data.
    seconds: how long the result is kept.

    A read may use counters and ranges of an index, never a whole table that grows. It is cancelled
    after two seconds (operators/upkeep/monitoring/gauges.py).
    """

    meanings: Mapping[str, str]
    read: str | Callable[[], Iterable[Sequence[Any]]]
    parameters: Callable[[], dict[str, Any]] | None = None
    labels: Sequence[str] = ()
    seconds: int = 5


class Unit(StrEnum):
    """The unit of a gauge's value."""

    COUNT = "count"
    SECONDS = "seconds"
    DAYS = "days"
    BYTES = "bytes"
    UP = "up"  # 1 or 0


class Severity(StrEnum):
    """The urgency of an alert."""

    CRITICAL = "critical"
    WARNING = "warning"
    NONE = "none"


@dataclass(frozen=True)
class Alert:
    """An alert rule of Prometheus. deploy/prometheus/alerts.yml is written from all of them.

    name: of the rule and of its runbook: docs/operate/runbooks/desk-late.md for VoucherDeskLate.
    after: how long the expression holds before the alert fires, as Prometheus writes it.
    summary: what is wrong, as a template of Prometheus.
    expression: when it fires, in PromQL. The limit of a component says it for its alert.
    """

    name: str
    severity: Severity
    after: str
    summary: str
    expression: str = ""

    @property
    def runbook(self) -> str:
        """The file name of its runbook."""
        words = re.findall(r"[A-Z][a-z]+", self.name.removeprefix("Voucher"))
        return f"{'-'.join(words).lower()}.md"


@dataclass(frozen=True)
class Component:
    """A line of the System page: whether all is well with one gauge, and what to do if not.

    The line is amber or red while the worst value of the gauge is above the limit, or below it if
    `low_is_bad`. `alert` fires when the line is red. `labels` chooses values of the gauge. With
    `every_exporter`, the alert needs a bad value from each exporter, because one host may have lost
    the cache. People who may view `model` see the line. With `leads_to_list` it links to the list.
    A gauge without a value has no line. With `set_up_later`, the line is neutral as long as all
    values of the gauge are infinite, until both the installation and the first order are older than
    a day. With `technical`, the line is folded while all is well. As long as the gauge
    `begins_with` has no value, an age is that of the installation.
    """

    title: str
    gauge: str
    unit: Unit
    amber: float
    red: float
    advice: str
    alert: Alert
    model: type[Model]
    labels: Mapping[str, str] = field(default_factory=dict)
    low_is_bad: bool = False
    every_exporter: bool = False
    leads_to_list: bool = True
    set_up_later: bool = False
    technical: bool = False
    begins_with: str = ""


@dataclass(frozen=True)
class Watch:
    """A limit whose crossing warns staff (operators/warnings/).

    kind: its name in the database. title: its name for people.
    sql: the things that are beyond `%(limit)s`, as rows of a subject, a sentence for people, and
        the id of a row of `model` that has a page, or NULL. A subject is warned about once until it
        is missing. It uses counters and ranges of an index, and may contain `%%`.
    limit, unit: the limit until staff choose another one, and what it counts.
    advice: what to do.
    model: those who may view it see the warning.
    sentences: the messages (`gettext_noop`) of which the query makes its sentences; the first that
        fits counts. The database holds the English sentences, and readers get them translated.
    """

    kind: str
    title: str
    sql: str
    limit: int
    unit: str
    advice: str
    model: type[Model]
    sentences: Sequence[str]


@dataclass(frozen=True)
class Expiring:
    """Rows that `delete_old_data` deletes when they are old, or only empties.

    kind: their name in the command's output.
    table, key, start: the rows, their primary key, and a value before every key.
    old: an SQL condition that is true for the rows to delete; `%(before)s` is a time.
    days: the name in RETENTION_DAYS of how long they are kept.
    emptied: the columns to set instead of deleting the row, as SQL; empty to delete it.
    """

    kind: str
    table: str
    old: str
    days: str
    key: str = "id"
    start: int | str = 0
    emptied: str = ""


class Whose(StrEnum):
    """The people whom rows are about."""

    STAFF = "staff"
    MEMBERS = "members"
    BOTH = "staff and members"
    PLAYERS = "players"
    CONTACTS = "contacts of companies"
    ADDRESSES = "owners of email addresses"


@dataclass(frozen=True)
class Personal:
    """Columns of a table that are about people (docs/operate/personal-data.md), and how `person`
    finds, hands over and deletes them (operators/upkeep/personal_data.py).

    whose, why: the people, and what the service needs the rows for.
    columns: what is handed over, with the columns of `context`, which say what a row is about.
    withheld: what is not: secrets, and texts that may be about somebody else.
    find: an SQL condition for the rows of a person. Its parameters are those of
        `Person.parameters()`. Empty if no command finds the rows.
    delete: `DELETE`, or the columns to set instead, as SQL; empty if everything is kept.
    when: an SQL condition for the rows that may be deleted now; empty if all may.
    kept: what stays, and why.
    """

    table: str
    whose: Whose
    why: str
    columns: Sequence[str] = ()
    withheld: Sequence[str] = ()
    context: Sequence[str] = ()
    find: str = ""
    delete: str = ""
    when: str = ""
    kept: str = ""


class FindOfAccount(Protocol):
    """Finds at most `limit` rows of an account, newest first."""

    def __call__(self, text: str, *, account: Any, limit: int) -> Iterable[Any]: ...


@dataclass(frozen=True)
class Finder:
    """Finds rows by a text that staff or a member typed (core/backoffice/search.py).

    kind: what the rows are, for people.
    model: the rows. Staff who may view it find them.
    find: the rows that match, at most a few. Each read uses an index, or a table that does not grow
        with the number of orders. The text has no white space around it and is never empty.
    describe: a name for a row, and what distinguishes it from others.
    of_account: the same for members, who find only rows of their account; None if they do not
        search these rows.
    secret: the text is a secret if this finder knows it. No other finder then gets the text.
    replaces: a model whose rows staff do not find as well if they may view this one.
    """

    kind: str
    model: type[Model]
    find: Callable[[str], Iterable[Any]]
    describe: Callable[[Any], tuple[str, str]] = lambda row: (str(row), "")
    of_account: FindOfAccount | None = None
    secret: bool = False
    replaces: type[Model] | None = None


@dataclass(frozen=True)
class Report:
    """A file that people receive by email for each day, week or month (merchants/email/reports.py).

    kind: its name in the database. title: its name for people.
    may: whether this user may receive it now.
    build: its name and its parts, for a user, the first day, and the first day after it (UTC).
        None if there is nothing to send, such as a month that is not closed.
    """

    kind: str
    title: str
    may: Callable[[Any], bool]
    build: Callable[[Any, date, date], tuple[str, Iterable[bytes]] | None]


@dataclass(frozen=True)
class StaffRight:
    """A right of staff in words, for the page on which a role is made.

    section: the heading under which the page lists it.
    words: say what a person with this right does. They begin with a verb.
    permissions: those of Django that it needs, as `app.codename`.
    roles: those that have it. Auditors also have every `view_` permission without being named.
    """

    section: Section
    words: str
    permissions: Sequence[str]
    roles: Sequence[StaffRole] = ()


class Rights(StrEnum):
    """The rights of the service's database role to the rows of a table.

    A lock on a row (`FOR UPDATE`) needs UPDATE, too.
    """

    READ = "SELECT"
    APPEND = "SELECT, INSERT"
    APPEND_AND_EXPIRE = "SELECT, INSERT, DELETE"
    KEEP = "SELECT, INSERT, UPDATE"
    CHANGE = "SELECT, INSERT, UPDATE, DELETE"
    RENUMBER = "SELECT, USAGE, UPDATE"  # of a sequence: imports set its value


@dataclass(frozen=True)
class BackOffice:
    """The declarations of one app. They may name tables of this app and of lower apps.

    checks: `reconcile` fails when one finds an exception. A check that joins the tables of several
        apps belongs to the highest of them.
    warnings: `reconcile` reports their exceptions without failing, such as an overdue refund.
    triggers, constraints: names that must exist in the database besides those of the models.
    counted: the tables whose rows `reconcile` counts, by the name it prints.
    sealed: the columns that `reseal` seals again and `reconcile --decrypt` opens.
    expiring: what `delete_old_data` deletes, in this order.
    personal: what the tables hold about people. A table comes after those that refer to it.
    decrypt_checks: what else `reconcile --decrypt` checks.
    staff_rights: what staff may do with the rows of this app.
    menu: the entries, in the order in which they are shown.
    menu_pages: the entries of pages that are no lists, in the order in which they are shown.
    rights: what the service's database role may do with each table, and with a sequence that it may
        set; other sequences are granted by `migrate` without being named.
    gauges: what the exporter of metrics reads from the database.
    components: the lines of the System page, each with its alert.
    alerts: the alerts about other metrics.
    finders: what the search fields find, in the order of the results.
    watches: the limits whose crossing warns staff.
    reports: the files that people receive by email.
    parts: the rows whose timeline belongs to the timeline of a row of another model, by that
        model's label, such as the clients of an account.
    seen_with: audit entries of these actions are on a timeline only for staff who may view this
        model. All others are there for staff who may view their object.
    """

    checks: Sequence[Check] = ()
    warnings: Sequence[Check] = ()
    triggers: Sequence[str] = ()
    constraints: Sequence[str] = ()
    counted: Mapping[str, str] = field(default_factory=dict)
    sealed: Sequence[Sealed] = ()
    expiring: Sequence[Expiring] = ()
    personal: Sequence[Personal] = ()
    decrypt_checks: Sequence[DecryptCheck] = ()
    staff_rights: Sequence[StaffRight] = ()
    menu: Sequence[MenuEntry] = ()
    menu_pages: Sequence[MenuPage] = ()
    rights: Mapping[str, Rights] = field(default_factory=dict)
    gauges: Sequence[Gauges] = ()
    components: Sequence[Component] = ()
    alerts: Sequence[Alert] = ()
    finders: Sequence[Finder] = ()
    watches: Sequence[Watch] = ()
    reports: Sequence[Report] = ()
    parts: Mapping[str, Callable[[int], Objects]] = field(default_factory=dict)
    seen_with: Mapping[str, type[Model]] = field(default_factory=dict)


def read_access(*models: type[Model]) -> list[str]:
    """The permissions to view rows of these models."""
    return [f"{model._meta.app_label}.view_{model._meta.model_name}" for model in models]


def full_access(*models: type[Model]) -> list[str]:
    """The permissions to view, add, change and delete rows of these models."""
    return [
        f"{model._meta.app_label}.{verb}_{model._meta.model_name}"
        for model in models
        for verb in ("view", "add", "change", "delete")
    ]


def ids_of(rows: QuerySet[Any]) -> list[str]:
    """The primary keys of the rows, as `Objects` holds them."""
    return [str(pk) for pk in rows.order_by("pk").values_list("pk", flat=True)]
