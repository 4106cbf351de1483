"""The users and groups of the back office."""

from __future__ import annotations

from typing import Any

from django.contrib import admin
from django.contrib.auth.admin import GroupAdmin as BaseGroupAdmin
from django.contrib.auth.admin import UserAdmin as BaseUserAdmin
from django.contrib.auth.models import Group, User
from django.http import HttpRequest
from unfold.forms import AdminPasswordChangeForm, UserChangeForm, UserCreationForm

from operators.admin.base import BackOfficeAdmin, KeptAdmin

admin.site.unregister(User)
admin.site.unregister(Group)

RIGHTS = ("is_superuser", "groups", "user_permissions")


@admin.register(User)
class UserAdmin(BaseUserAdmin, KeptAdmin):  # type: ignore[type-arg, misc]
    """Users are switched off, never deleted: the audit trail names them.

    Only superusers grant rights or change superusers. Otherwise everybody with the permission to
    change users could grant themselves every other permission.
    """

    form = UserChangeForm
    add_form = UserCreationForm
    change_password_form = AdminPasswordChangeForm
    list_display = ("username", "email", "first_name", "last_name", "is_active", "is_superuser")
    list_filter = ("is_active", "is_staff", "is_superuser")

    def get_readonly_fields(self, request: HttpRequest, obj: User | None = None) -> Any:
        fields = (*super().get_readonly_fields(request, obj), "last_login", "date_joined")
        return fields if _is_superuser(request) else (*fields, *RIGHTS)

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        if isinstance(obj, User) and obj.is_superuser and not _is_superuser(request):
            return False
        return bool(super().has_change_permission(request, obj))


@admin.register(Group)
class GroupAdmin(BaseGroupAdmin, BackOfficeAdmin):  # type: ignore[misc]  # the bases agree at run time
    list_display = ("name",)
    actions = None

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return _is_superuser(request)

    has_add_permission = has_delete_permission = has_change_permission


def _is_superuser(request: HttpRequest) -> bool:
    return bool(getattr(request.user, "is_superuser", False))
