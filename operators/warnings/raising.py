"""Raises a warning once for each crossing of a limit, and ends it when it is over.

The unique index on open warnings decides: of two workers, one inserts the row. The same transaction
stores the emails and the messages in Telegram, so a crossing sends one to each person, also if a
worker is killed (docs/decisions/0087-warnings.md).
"""

from typing import Any

import structlog
from django.conf import settings
from django.contrib.auth.models import User
from django.db import connection, transaction
from django.db.models import Model, Q, QuerySet
from django.urls import NoReverseMatch, reverse
from django.utils import translation
from django.utils.translation import gettext as _

from accounts.preferences.languages import language_of
from core.backoffice.declarations import Watch
from core.backoffice.registry import watches
from core.backoffice.staff import staff_who_may
from core.database.functions import StatementTimeout, database_now, statement_timeout
from core.texts import translate_stored
from merchants.email.outbox import write_email
from merchants.models import EmailKind
from operators.warnings.models import StaffWarning, WarningPost, WarningRule

logger = structlog.get_logger(__name__)

SECONDS = 5  # of the query of one kind
MOST = 200  # warnings of one kind that are open at once
LINES, LENGTH = 10, 300  # of an email or a message
RAISE = """
    INSERT INTO warnings_staffwarning (kind, subject, text, path)
    SELECT %(kind)s, * FROM unnest(%(subjects)s::text[], %(texts)s::text[], %(paths)s::text[])
        ON CONFLICT (kind, subject) WHERE ended_at IS NULL DO NOTHING
    RETURNING text
"""
END = """
    UPDATE warnings_staffwarning SET ended_at = now()
     WHERE kind = %(kind)s AND ended_at IS NULL AND raised_at < %(read_at)s
       AND subject <> ALL(%(subjects)s)
"""


def rules() -> dict[str, WarningRule]:
    """The rule of each kind. Adds those of kinds that are new."""
    known = watches()
    WarningRule.objects.bulk_create(
        [WarningRule(kind=kind, limit=watch.limit) for kind, watch in known.items()],
        ignore_conflicts=True,
    )
    return {rule.kind: rule for rule in WarningRule.objects.filter(kind__in=known)}


def sweep_warnings() -> dict[str, int]:
    """Raises and ends the warnings of all kinds; returns how many were raised of each. A kind that
    cannot be read does not stop the others."""
    raised = {}
    known = watches()
    for kind, rule in rules().items():
        try:
            raised[kind] = sweep_kind(known[kind], rule)
        except StatementTimeout:
            logger.warning("warnings_not_read", kind=kind)
    return raised


def sweep_kind(watch: Watch, rule: WarningRule) -> int:
    """Raises and ends the warnings of one kind; returns how many were raised."""
    read_at = database_now()
    rows = _read(watch, rule) if rule.active else []
    values: dict[str, Any] = {
        "kind": watch.kind,
        "read_at": read_at,
        "subjects": [subject for subject, _, _ in rows],
        "texts": [text[:LENGTH] for _, text, _ in rows],
        "paths": [_path(watch.model, pk) for _, _, pk in rows],
    }
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(END, values)
        cursor.execute(RAISE, values)
        new = [text for (text,) in cursor]
        if new:
            _send(watch, rule, new)
    return len(new)


def open_warnings(user: User) -> QuerySet[StaffWarning]:
    """The open warnings about what this person may see, the newest first."""
    open_ones = StaffWarning.objects.filter(kind__in=kinds_for(user), ended_at=None)
    return open_ones.order_by("-pk")


def describe(warning: StaffWarning) -> str:
    """The warning in the reader's language."""
    return translate_stored(warning.text, *watches()[warning.kind].sentences)


def kinds_for(user: User) -> list[str]:
    """The kinds of warnings about what this person may see."""
    return [kind for kind, watch in watches().items() if user.has_perm(_permission(watch.model))]


def receivers_of(watch: Watch, rule: WarningRule) -> list[User]:
    """The active staff who receive warnings of this kind."""
    staff = User.objects.filter(is_staff=True, is_active=True)
    roles, people = (list(some.values_list("pk", flat=True)) for some in (rule.roles, rule.people))
    if roles or people:
        return list(staff.filter(Q(groups__in=roles) | Q(pk__in=people)).distinct().order_by("pk"))
    return list(staff_who_may(_permission(watch.model)).order_by("pk"))


def _read(watch: Watch, rule: WarningRule) -> list[tuple[str, str, Any]]:
    """A subject, a sentence, and the id of a row with a page, for each thing beyond the limit."""
    with statement_timeout(SECONDS), connection.cursor() as cursor:
        cursor.execute(watch.sql, {"limit": rule.limit})
        return [(str(subject), str(text), pk) for subject, text, pk in cursor.fetchmany(MOST)]


def _send(watch: Watch, rule: WarningRule, new: list[str]) -> None:
    receivers = receivers_of(watch, rule)
    if rule.email:
        path = reverse("admin:warnings_staffwarning_changelist")
        for address in sorted({one.email for one in receivers if one.email}):
            title, *lines = _lines(watch, new, language_of(address))
            facts = {"title": title, "lines": lines, "path": path}
            write_email(kind=EmailKind.STAFF_NOTICE, to=address, facts=facts)
    if rule.telegram and settings.TELEGRAM_BOT_TOKEN:
        linked = [one for one in receivers if hasattr(one, "telegram_link")]
        lines = _lines(watch, new, settings.LANGUAGE_CODE)
        WarningPost.objects.bulk_create([WarningPost(user=one, lines=lines) for one in linked])


def _lines(watch: Watch, new: list[str], language: str) -> list[str]:
    """A title, the first warnings if there are several, and what to do."""
    with translation.override(language):
        sentences = [translate_stored(one, *watch.sentences) for one in new[:LINES]]
        if len(new) > 1:
            title = _("%(kind)s: %(count)s warnings")
            sentences.insert(0, title % {"kind": watch.title, "count": len(new)})
        if len(new) > LINES:
            sentences.append(_("… and %(count)s more.") % {"count": len(new) - LINES})
        return [*sentences, str(watch.advice)]


def _path(model: type[Model], pk: Any) -> str:
    if pk is None:
        return ""
    try:
        name = f"admin:{model._meta.app_label}_{model._meta.model_name}_change"
        return reverse(name, args=[pk])
    except NoReverseMatch:
        return ""


def _permission(model: type[Model]) -> str:
    return f"{model._meta.app_label}.view_{model._meta.model_name}"
