"""Shows the entries of the audit trail and of timelines, with links to what the reader may see."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from typing import Any

from django.apps import apps
from django.contrib.auth.models import Group, User
from django.core.exceptions import FieldDoesNotExist
from django.db.models import DateField, DecimalField, Model
from django.http import HttpRequest
from django.urls import reverse
from django.utils.html import escape, strip_tags
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _
from django.utils.translation import gettext_noop

from accounts.models import Account
from audit.actor import without_channel
from audit.models import AuditAction, AuditEntry
from cases.models import Case
from catalogue.models import CodeHold
from core.inputs import is_id
from core.texts import (
    english,
    inside_sentence,
    lazy,
    local_figure,
    message_of,
    values_in,
    with_separators,
)
from merchants.models import Membership, Role
from operators.frame.base import EMPTY, amount, link_to, shown_reference, time_cell
from operators.frame.reader import may_view, reader_may_view, registered_models
from operators.frame.row_names import row_name
from operators.history.audit_trail import Entry
from operators.sign_in.access import ENDED
from operators.sign_in.asked_changes import describe
from operators.sign_in.models import (
    NAME_TAKEN,
    NO_NAME,
    NO_ROLE,
    SWITCHED_OFF,
    UNREADABLE,
    TwoPersonChange,
)
from operators.sign_in.second_person import NAME_AND_EMAIL, REQUEST, WITH_ROLE, WITHOUT_ROLE
from topups.models import FieldType, TopUpProduct
from wallets.models import LedgerEntry

# The notes that the service writes, in English. They are shown in the language of the reader.
NOTES = (
    ENDED,  # before the sessions alone
    gettext_noop("Roles added: %(roles)s"),
    gettext_noop("Roles removed: %(roles)s"),
    gettext_noop("Permissions added: %(permissions)s"),
    gettext_noop("Permissions removed: %(permissions)s"),
    gettext_noop("Waits for another: %(change)s"),
    gettext_noop("Withdrawn: %(change)s"),
    gettext_noop("Rejected: %(change)s"),
    gettext_noop("Ended with the access of %(person)s: %(change)s"),
    gettext_noop("%(note)s. Withdrawn: %(change)s"),
    gettext_noop("%(note)s. Rejected: %(change)s"),
    gettext_noop("Asked by %(asker)s: %(change)s"),
    gettext_noop("Asked by %(asker)s, confirmed by %(staff)s"),
    gettext_noop("Sessions ended: %(number)s"),
    gettext_noop("Backup codes replaced"),
    gettext_noop("Invitation sent again"),
    gettext_noop("Password link sent"),
    gettext_noop("Sign-in unlocked"),
    *(WITH_ROLE, WITHOUT_ROLE, NAME_AND_EMAIL),
    gettext_noop("Codes: %(number)s. %(note)s"),
    gettext_noop("Codes: %(number)s"),
    gettext_noop("Moved to %(hold)s. %(note)s"),
    gettext_noop("Moved to %(hold)s"),
    gettext_noop("Expired before %(day)s"),
    gettext_noop("Repeats another code, but for quotation marks or marks of a spreadsheet"),
    gettext_noop("Telegram user %(id)s"),
    gettext_noop("replied to an order's message"),
    gettext_noop("The group is now %(chat)s. Settings and routes were updated."),
    gettext_noop("Catalogue as %(format)s"),
    gettext_noop("Reconcile requested"),
    gettext_noop("Passkey"),
    gettext_noop("With a company account"),
    gettext_noop("Subject %(subject)s: %(note)s"),
    gettext_noop("Subject %(subject)s"),
    *map(english, (NO_ROLE, SWITCHED_OFF, NAME_TAKEN, NO_NAME, UNREADABLE)),
    gettext_noop("After too many wrong passwords"),
    gettext_noop("Codes left: %(number)s"),
    gettext_noop("Time zone: %(zone)s, language: %(language)s"),
    gettext_noop("Time zone: %(zone)s"),
    gettext_noop("%(hours)s h overlap. %(note)s"),
    gettext_noop("%(hours)s h overlap."),
    gettext_noop("opening balance"),
    gettext_noop("%(person)s claimed it more than %(minutes)s minutes ago. Ask them."),
    gettext_noop("%(person)s may no longer work on orders."),
    gettext_noop("By file: %(added)s set, %(removed)s removed."),
    gettext_noop("by email"),
    gettext_noop("Deleted: %(word)s"),
    gettext_noop("Rows: %(word)s"),
    gettext_noop("Started"),
    gettext_noop("Chosen"),
    gettext_noop("Ended"),
    gettext_noop("none"),
    # Changes of members and of clients by members.
    gettext_noop("Role changed, From: %(word)s, To: %(other_word)s"),
    gettext_noop("Role: %(word)s"),
    gettext_noop("%(word)s, Not sent until another member of our staff approves it"),
    gettext_noop("Person blocked, Reason: %(note)s"),
    gettext_noop("API client renamed, Before: %(name)s"),
    gettext_noop("Allowlist changed, Allowed: %(word)s"),
    gettext_noop("Second factor required"),
    gettext_noop("Second factor no longer required"),
    *("Person unblocked", "API client created", "API client switched on"),
    *("API client switched off", "Key for books created", "Key for books revoked"),
    *("Password changed", "Second factor turned on", "Second factor turned off"),
    *map(english, Role.labels),
)
# The counts of an import of the catalogue, such as `products: 2 created, 1 updated`.
COUNTS = re.compile(r"(?:[a-z ]+: \d+ [a-z]+(?:, \d+ [a-z]+)*(?:; |$))+")
COUNTED = (gettext_noop("topup products"), gettext_noop("created"), gettext_noop("updated"))
# Words of the fields of a top-up product (topups/topup_product_import.py).
FIELD_WORDS = {**dict(FieldType.choices), "optional": lazy("optional")}
DECIMAL = re.compile(r"-?\d+\.\d+")
FIELD_WORD = re.compile(rf"(?<=, )({'|'.join(FIELD_WORDS)})(?=[:,)])")
PROPERTIES = {  # of people; Django has no better words for them
    "is_active": lazy("may sign in"),
    "is_staff": lazy("member of staff"),
    "is_superuser": lazy("superuser"),
}
# How people call what the code calls otherwise.
NAMES = {
    "accounts.apiclient": lazy("client"),
    "auth.user": lazy("person"),
    "catalogue.codehold": lazy("hold"),
    "catalogue.vouchercode": lazy("code"),
    "telegram.platformsettings": lazy("settings"),
}
PRICES = ("price", "next_price", "fixed_price", "regular_price", "unit_cost")
SUMS = ("amount", "balance", "per_day", "per_month")  # with a currency
# Not longer than an amount: a note of a person may look like one.
SUM = re.compile(r"(-?[0-9]{1,16}\.[0-9]{1,4}) ([A-Z]{3})")
# Properties that have another name than their field: that field, or the model of their keys.
OTHER_FIELDS = {"fixed_price": "price"}
REGULAR_PRICE = gettext_noop("regular price")  # of a new entry of a price list
OTHER_ROWS: dict[str, type[Model]] = {
    "hold": CodeHold,
    "reversed_entry": LedgerEntry,
    "topup_product": TopUpProduct,
}
MOMENT = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)")
MEMBER = lazy("a member")  # for readers who may not view members


@dataclass(frozen=True)
class Row:
    """An entry as a page shows it. `on` is empty on the page of the object itself."""

    at: datetime
    what: str
    colour: str
    on: str
    url: str
    who: str
    where: str
    note: str
    changes: list[tuple[str, str, str]]
    request_id: str


def rows(
    request: HttpRequest, entries: Iterable[Entry], *, own: Collection[tuple[str, str]] = ()
) -> list[Row]:
    """The entries for this reader; `own` are the labels and keys of the page's own object.

    Network addresses are for those who may view the audit trail. So are the email addresses with
    which members sign in, and for those who may view members.
    """
    sees_all = may_view(request, AuditEntry)
    names_members = sees_all or may_view(request, Membership)
    entries = list(entries)
    names = links_to_rows(entries)
    requests = TwoPersonChange.objects.in_bulk([*filter(None, map(request_of, entries))])
    return [
        Row(
            at=entry.at,
            what=entry.what,
            colour=entry.colour or "info",
            on="" if entry.on in own else object_name(entry),
            url="" if entry.on in own else url_for(request, *entry.on),
            who=MEMBER if entry.by_member and not names_members else without_channel(entry.who),
            where=(entry.address if sees_all else "") or entry.where,
            note=note_text(entry.note, requests.get(request_of(entry))),
            changes=change_texts(entry, names),
            request_id=entry.request_id,
        )
        for entry in entries
    ]


def object_name(entry: Entry) -> str:
    """The object of the entry in words, such as `account Acme`."""
    label, pk = entry.on
    if label == Case._meta.label_lower:  # its reference is that of its order
        return f"{kind_of(label)} {pk}"
    if entry.name and entry.what == AuditAction.EXPORTED.label:  # on the reader, or their account
        return _("file %(name)s") % {"name": entry.name}
    if label == Account._meta.label_lower and "account" in entry.changes:  # a booking
        return f"{kind_of(label)} {entry.changes['account'][1]}"
    made = entry.name and shown_reference(entry.name) == EMPTY
    return f"{kind_of(label)} {'' if made else entry.name or pk}".rstrip()


def kind_of(label: str) -> str:
    """The kind of an object in words. Entries outlive models, so a label may name none."""
    if label in NAMES:
        return NAMES[label]
    try:
        return str(apps.get_model(label)._meta.verbose_name)
    except LookupError:
        return label


def change_texts(
    entry: Entry, names: Mapping[tuple[type[Model], str], str] | None = None
) -> list[tuple[str, str, str]]:
    """The changed properties, each with its old and its new value as text. A property that was and
    stays empty is left out. For a page, `names` are links to the rows that values are the keys of,
    and choices are in words. A link that begins with the property, such as `hold 1`, needs no other
    name."""
    label, _ = entry.on

    def text(name: str, value: Any) -> str:
        if names is not None and isinstance(value, str | int):
            model = _related(label, name)
            if model and (model, str(value)) in names:
                return names[model, str(value)]
            choices = dict(getattr(_field(label, name), "flatchoices", ()))
            if value in choices:
                return str(choices[value])
            field = _field(label, name)
            if isinstance(field, DateField):
                value = local_figure(str(value))
            elif isinstance(field, DecimalField) and DECIMAL.fullmatch(str(value)):
                value = value if name in PRICES else with_separators(str(value))
        return value_text(name, value)

    texts = [
        (name, text(name, old), text(name, new))
        for name, (old, new) in entry.changes.items()
        if name != REQUEST
    ]
    named = [(property_name(label, name), old, new) for name, old, new in texts if old != new]
    return [("" if _is_named(*one) else one[0], *one[1:]) for one in named]


def _is_named(name: str, *values: str) -> bool:
    """Whether a value is a link that begins with the name of its property."""
    links = [strip_tags(one).casefold() for one in values if isinstance(one, SafeString)]
    return any(one.startswith(f"{name.casefold()} ") for one in links)


def request_of(entry: Entry) -> int:
    """The id of the request for a second person that an entry is about; 0 for any other entry."""
    return int(entry.changes[REQUEST][1]) if REQUEST in entry.changes else 0


def note_text(note: str, change: TwoPersonChange | None = None) -> str:
    """The note of an entry in the reader's language, with the names of roles, if the service wrote
    it. A request for a second person about prices is in words, with links."""
    if COUNTS.fullmatch(note):
        return re.sub("[a-z][a-z ]*[a-z]", lambda word: _(word[0]), note)
    if SUM.fullmatch(note):
        return value_text("amount", note)
    message = message_of(note, *NOTES)
    values = values_in(note, message) if message else None
    if values is None:
        return note
    for name, value in values.items():
        if name.endswith("word"):
            values[name] = _(value)
        elif name == "note":
            values[name] = note_text(value)
        elif name == "hold":
            values[name] = row_name(CodeHold, value)
        elif name in ("number", "day"):
            values[name] = local_figure(value)
    for name in {"role", "roles"} & values.keys():
        values[name] = "; ".join(str(Group(name=one)) for one in values[name].split("; "))
    if "change" in values and change and "prices" in change.data:
        words = {name: escape(value) for name, value in values.items()}
        return SafeString(escape(_(message)) % (words | {"change": describe(change)}))
    if "change" in values:
        values["change"] = note_text(values["change"])
    return _(message) % values


def links_to_rows(entries: Iterable[Entry]) -> dict[tuple[type[Model], str], str]:
    """Links to the rows whose keys are old or new values, as far as the reader may view them, with
    one query for each model."""
    keys: dict[type[Model], set[str]] = {}
    for entry in entries:
        for name, values in entry.changes.items():
            model = _related(entry.on[0], name)
            if model is not None and reader_may_view(model):
                keys.setdefault(model, set()).update(str(one) for one in values if is_id(str(one)))
    return {
        (model, str(pk)): link_to(row)
        for model, pks in keys.items()
        for pk, row in model._default_manager.in_bulk(pks).items()
    }


def _related(label: str, name: str) -> type[Model] | None:
    """The model whose key a property holds; None for every other property."""
    field = _field(label, name)
    is_key = field is not None and (field.many_to_one or field.one_to_one)
    return field.related_model if is_key else OTHER_ROWS.get(name)


def property_name(label: str, name: str) -> str:
    """A property in words, such as `staff status`. Entries outlive columns, and name rows, too."""
    if label == "auth.user" and name in PROPERTIES:
        return str(PROPERTIES[name])
    if verbose_name := getattr(_field(label, name), "verbose_name", ""):
        return str(verbose_name)
    if name in OTHER_ROWS:
        return kind_of(OTHER_ROWS[name]._meta.label_lower)
    return _(name.replace("_", " ")) if name.isidentifier() else name


def _field(label: str, name: str) -> Any:
    """The field that holds a property; None if there is none."""
    try:
        return apps.get_model(label)._meta.get_field(OTHER_FIELDS.get(name, name))
    except (LookupError, FieldDoesNotExist):
        return None


def value_text(name: str, value: Any) -> str:
    """A value of `changes` as text."""
    match value:
        case None | "" | []:
            return EMPTY
        case bool():
            return _("yes") if value else _("no")
        case "reversal" if name == "kind":  # no kind of ledger entries
            return _("Reversal")
        case str() if name == "booking_reference":
            return shown_reference(value)
        case str() if name == "fields":
            return FIELD_WORD.sub(lambda word: inside_sentence(FIELD_WORDS[word[0]]), value)
        case str() if name in PRICES:
            return amount(Decimal(value))
        case str() if name in SUMS:
            found = SUM.fullmatch(value)
            return amount(Decimal(found[1]), found[2]) if found else _(value)
        case str() if MOMENT.fullmatch(value):
            with suppress(ValueError):  # a name that somebody chose
                return time_cell(datetime.fromisoformat(value))
        case list():
            return ", ".join(str(each) for each in value)
    return str(value)


def url_for(request: HttpRequest, label: str, pk: str) -> str:
    """The address of the object's page; empty if it has none or the reader may not see it."""
    model = _model(label)
    return page_of(label, pk) if model is not None and may_view(request, model) else ""


def page_of(label: str, pk: str) -> str:
    """The address of the object's page; empty if it has none."""
    model = _model(label)
    if not pk or model is None:
        return ""
    return reverse(f"admin:{model._meta.app_label}_{model._meta.model_name}_change", args=[pk])


def _model(label: str) -> type[Model] | None:
    models = [model for model in registered_models() if model._meta.label_lower == label]
    return models[0] if models else None


def staff() -> list[str]:
    """The usernames of staff, for suggestions."""
    users = User.objects.filter(is_staff=True).order_by("username")
    return list(users.values_list("username", flat=True)[:500])
