"""Records sign-ins, and every change of a staff account or of the rights of a user or group.

These are receivers of Django's signals, so they see a change wherever it is made: in the back
office, by `createsuperuser` and `changepassword`, or in `manage.py shell`. They do not see
`QuerySet.update()` and SQL. Members' accounts are recorded by merchants/people/, except for their
sign-ins.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from contextlib import contextmanager, nullcontext
from typing import Any

from django.contrib.auth import get_user_model
from django.contrib.auth.models import Group, User
from django.contrib.auth.password_validation import MinimumLengthValidator
from django.contrib.auth.signals import user_logged_in, user_logged_out
from django.db.models.signals import m2m_changed, post_save, pre_save

from audit.actor import acting_name, current_actor
from audit.models import AuditAction
from audit.services import find_changes, record_action
from core.command_line import acting_from_shell
from core.database.columns import NOTE_LENGTH
from core.texts import english

SHOWN = ("username", "email", "is_active", "is_staff", "is_superuser")
WATCHED = {*SHOWN, "password"}


def connect() -> None:
    """Connects the receivers. Called once, when the app is ready."""
    user_logged_in.connect(_record_sign_in, dispatch_uid="audit.signed_in")
    user_logged_out.connect(_record_sign_out, dispatch_uid="audit.signed_out")
    pre_save.connect(_remember, sender=User, dispatch_uid="audit.remember_user")
    post_save.connect(_record_user, sender=User, dispatch_uid="audit.record_user")
    for through in (User.groups, User.user_permissions, Group.permissions):
        m2m_changed.connect(
            _record_rights, sender=through.through, dispatch_uid=f"audit.{through.field}"
        )


def record_on_user(
    user: User, action: AuditAction, *, actor: User | None, note: str = "", **more: Any
) -> None:
    """Adds an entry about a user, found by the username."""
    reference = user.get_username()
    record_action(actor=actor, action=action, on=user, reference=reference, note=note, **more)


def _record_sign_in(sender: object, user: User, **kwargs: Any) -> None:
    note = getattr(user, "sign_in_note", "")  # how, if not with a password
    record_on_user(user, AuditAction.SIGNED_IN, actor=user, note=note)


def _record_sign_out(sender: object, user: User | None, **kwargs: Any) -> None:
    if user is not None:
        record_on_user(user, AuditAction.SIGNED_OUT, actor=user)


def _remember(
    sender: object, instance: Any, update_fields: Collection[str] | None, **kwargs: Any
) -> None:
    """Keeps the stored values of the user, for `_record_user`."""
    instance.audited_before = None
    if instance.pk and (update_fields is None or WATCHED.intersection(update_fields)):
        rows = get_user_model().objects.filter(pk=instance.pk)
        instance.audited_before = rows.values(*WATCHED).first()


def _record_user(sender: object, instance: Any, created: bool, raw: bool, **kwargs: Any) -> None:
    before = instance.audited_before
    after = {name: getattr(instance, name) for name in SHOWN}
    if created:
        actor = current_actor()
        if _is_staff(after) or (actor and actor.is_staff):
            _record_change(instance, AuditAction.USER_CREATED, find_changes({}, after))
        return
    if before is None or not (_is_staff(before) or _is_staff(after)):
        return
    changes = find_changes(before, after)
    if changes:
        ended = before["is_active"] and not after["is_active"]
        action = AuditAction.ACCESS_ENDED if ended else AuditAction.USER_CHANGED
        _record_change(instance, action, changes, note=getattr(instance, "ended", ""))


class RecordingLengthValidator(MinimumLengthValidator):
    """Django tells the validators of passwords about each new password that was saved, and not
    about a new hash of the same one. This one writes the audit entry for staff."""

    def password_changed(self, password: str, user: Any = None) -> None:
        before = getattr(user, "audited_before", None)
        if before is None:  # a new user
            return
        if _is_staff(before) or _is_staff({name: getattr(user, name) for name in SHOWN}):
            _record_change(user, AuditAction.PASSWORD_CHANGED, {})


def _record_change(user: User, action: AuditAction, changes: Any, note: str = "") -> None:
    with _actor() as actor:
        record_on_user(user, action, actor=actor, changes=changes, note=note)


@contextmanager
def _actor() -> Iterator[User | None]:
    """Yields the signed-in user. Outside a request, the entry names who runs the command, also for
    Django's own commands, such as `changepassword`."""
    actor = current_actor()
    with nullcontext() if actor or acting_name() else acting_from_shell():
        yield actor


def _is_staff(values: Any) -> bool:
    return bool(values["is_staff"] or values["is_superuser"])


def _record_rights(
    sender: Any, instance: Any, action: str, pk_set: set[int] | None, **kwargs: Any
) -> None:
    """Records groups and permissions that were added to, or removed from, a user or a group."""
    verb = {"post_add": "added", "post_remove": "removed", "pre_clear": "removed"}.get(action)
    if verb is None:
        return
    other = kwargs["model"]
    if action == "pre_clear":  # `sender` is the table between the two
        rows = sender.objects.filter(**{instance._meta.model_name: instance})
        pk_set = set(rows.values_list(f"{other._meta.model_name}_id", flat=True))
    others = list(other.objects.filter(pk__in=pk_set or ()).order_by("pk"))
    if kwargs["reverse"]:  # such as `group.user_set.add(user)`
        for owner in others:
            _record_right(owner, [instance], verb)
    elif others:
        _record_right(instance, others, verb)


def _record_right(owner: Any, rights: list[Any], verb: str) -> None:
    """Adds one entry, or more if the note of one cannot name all."""
    kind = "Roles" if isinstance(rights[0], Group) else "Permissions"
    title = f"{kind} {verb}: "
    names = _join([right.name for right in rights], length=NOTE_LENGTH - len(title))
    with _actor() as actor:
        for some in names:
            record_action(
                actor=actor,
                action=AuditAction.RIGHTS_CHANGED,
                on=owner,
                reference=english(owner),
                note=title + some,
            )


def _join(names: list[str], *, length: int) -> list[str]:
    """The names as lists of at most this length, if no single name is longer."""
    lists = names[:1]
    for name in names[1:]:
        longer = f"{lists[-1]}; {name}"
        if len(longer) <= length:
            lists[-1] = longer
        else:
            lists.append(name)
    return lists
