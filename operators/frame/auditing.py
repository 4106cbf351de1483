"""Writes an audit entry for everything that a form of the back office saves or deletes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, ClassVar

from django.contrib.admin import AdminSite
from django.contrib.auth.models import User
from django.core.exceptions import PermissionDenied
from django.db.models import BinaryField, Model, QuerySet
from django.forms.models import model_to_dict
from django.http import HttpRequest

from audit.models import AuditAction
from audit.services import Changes, change_action, find_changes, record_action
from core.texts import in_english

RIGHTS = {"groups", "user_permissions", "rights"}  # audit/people.py records them


class AuditedAdmin:
    """A mixin in front of an admin class: one entry for each form saved, with old and new values.

    It names the rows of inlines, too. A changed row with a page of its own, such as a shelf, gets
    an entry of its own instead. A class whose saving calls a service that writes its own entries
    sets `records_itself`.
    """

    added_action: ClassVar[AuditAction] = AuditAction.ADDED
    changed_action: ClassVar[AuditAction | None] = None  # chosen by the changes
    deleted_action: ClassVar[AuditAction] = AuditAction.DELETED
    records_itself: ClassVar[bool] = False

    def save_related(self, request: HttpRequest, form: Any, formsets: Any, change: Any) -> None:
        super().save_related(request, form, formsets, change)  # type: ignore[misc]
        if self.records_itself:
            return
        with in_english():
            self._record_saved(request, form, formsets, change)

    def _record_saved(self, request: HttpRequest, form: Any, formsets: Any, change: Any) -> None:
        site: AdminSite = self.admin_site  # type: ignore[attr-defined]
        changes = dict(_form_changes(form))
        for formset in formsets:
            changes |= _new_and_deleted(formset)
            for row, of_row in _changed_rows(formset):
                if site.is_registered(formset.model):
                    _record(request, change_action(of_row), row, of_row)
                else:
                    changes |= {f"{_row_name(row)}: {name}": pair for name, pair in of_row.items()}
        if not change:
            _record(request, self.added_action, form.instance, changes)
        elif changes:
            _record(request, self.changed_action or change_action(changes), form.instance, changes)

    def delete_model(self, request: HttpRequest, obj: Any) -> None:
        if not self.records_itself:
            with in_english():
                _record(request, self.deleted_action, obj, _deletion_changes(obj))
        super().delete_model(request, obj)  # type: ignore[misc]

    def delete_queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> None:
        for obj in queryset:
            self.delete_model(request, obj)


def read_stored(obj: Model, form: Any) -> None:
    """Reads the old values of the changed columns into `form.initial`, just before they are saved.

    Locks the row, so that the old values are still true when the new ones are written.
    """
    changed = {field.name for field in obj._meta.concrete_fields}.intersection(form.changed_data)
    rows = type(obj)._default_manager.select_for_update(of=("self",), no_key=True)
    form.initial |= model_to_dict(rows.get(pk=obj.pk), fields=list(changed))


def _form_changes(form: Any) -> Changes:
    names = [name for name in form.changed_data if name not in RIGHTS]
    after = {name: _plain(form.cleaned_data.get(name)) for name in names}
    return find_changes({name: _plain(form.initial.get(name)) for name in after}, after)


def _new_and_deleted(formset: Any) -> Changes:
    """The new and the deleted rows of an inline, as text."""
    new = {_row_name(row): (None, str(row)) for row in getattr(formset, "new_objects", ())}
    deleted = getattr(formset, "deleted_objects", ())
    return new | {_row_name(row): (str(row), None) for row in deleted}


def _changed_rows(formset: Any) -> Iterator[tuple[Model, Changes]]:
    """The changed rows of an inline, with old and new values."""
    for row, names in getattr(formset, "changed_objects", ()):
        form = next(form for form in formset.initial_forms if form.instance is row)
        old, new = form.initial, form.cleaned_data
        yield row, {name: (_plain(old.get(name)), _plain(new.get(name))) for name in names}


def _row_name(row: Model) -> str:
    return f"{row._meta.verbose_name} {row.pk or row}"


def _deletion_changes(obj: Model) -> Changes:
    names = [
        field.name for field in obj._meta.concrete_fields if not isinstance(field, BinaryField)
    ]
    return {name: (_plain(obj.serializable_value(name)), None) for name in names}


def _plain(value: Any) -> Any:
    """A value as JSON can hold it. A row is its id."""
    if isinstance(value, Model):
        return value.pk
    if isinstance(value, QuerySet | list | tuple):
        return [_plain(each) for each in value]
    if isinstance(value, Mapping):
        return {str(name): _plain(each) for name, each in value.items()}
    return value if value is None or isinstance(value, bool | int | str) else str(value)


def _record(request: HttpRequest, action: AuditAction, obj: Any, changes: Changes) -> None:
    if not isinstance(request.user, User):
        raise PermissionDenied
    record_action(
        actor=request.user,
        action=action,
        on=obj,
        reference=str(obj),
        changes=changes,
    )
