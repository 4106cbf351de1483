"""The users and groups of the back office."""

from __future__ import annotations

from typing import Any

from django.contrib import admin, messages
from django.contrib.admin.utils import unquote
from django.contrib.auth.admin import GroupAdmin as BaseGroupAdmin
from django.contrib.auth.admin import UserAdmin as BaseUserAdmin
from django.contrib.auth.models import Group, User
from django.db.models import Q, QuerySet
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import reverse
from unfold.decorators import action
from unfold.enums import ActionVariant
from unfold.forms import AdminPasswordChangeForm, UserChangeForm, UserCreationForm

from accounts.second_factor import has_factor
from audit.models import AuditEntry
from merchants.models import Membership
from merchants.people.credentials import reset_factor
from operators.frame.base import (
    BackOfficeAdmin,
    BackOfficeList,
    KeptAdmin,
    page,
    staff_of,
    time_cell,
    url_of,
)
from operators.frame.reader import may_view
from operators.history.audit_trail import EntryQuery, entry_of, read_entries
from operators.history.audit_trail_page import hidden_bookings
from operators.history.entries import rows
from operators.history.timeline import SHOWN

admin.site.unregister(User)
admin.site.unregister(Group)

RIGHTS = ("is_superuser", "groups", "user_permissions")


class NewUserForm(UserCreationForm):
    """The theme's form, in our words."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        usable = self.fields["usable_password"]
        usable.label = "Sign in with a password"
        usable.help_text = "Disabled: this person signs in through your company only."


class StaffList(BackOfficeList):
    """All users but the members of merchants' accounts, who have a list of their own."""

    def get_queryset(
        self, request: HttpRequest, exclude_parameters: list[str | None] | None = None
    ) -> QuerySet[User]:
        users: QuerySet[User] = super().get_queryset(request, exclude_parameters)
        has_rights = Q(is_staff=True) | Q(is_superuser=True)
        return users.filter(Q(membership=None) | has_rights).prefetch_related(
            "groups", "user_permissions"
        )


@admin.register(User)
class UserAdmin(BaseUserAdmin, KeptAdmin):  # type: ignore[type-arg, misc]
    """Users are switched off, never deleted: the audit trail names them.

    Only superusers grant rights or change superusers. Otherwise everybody with the permission to
    change users could grant themselves every other permission.
    """

    actions_detail = ("remove_second_factor",)
    change_form_outer_after_template = "admin/actions_of_person.html"
    records_itself = True  # audit/people.py does
    form = UserChangeForm
    add_form = NewUserForm
    change_password_form = AdminPasswordChangeForm
    list_display = ("username", "email", "is_active", "rights", "last_signed_in_at")
    fieldsets = (
        (None, {"fields": ("username", "password")}),
        ("Personal info", {"fields": ("first_name", "last_name", "email")}),
        (
            "Permissions",
            {"fields": ("is_active", "is_staff", "is_superuser", "groups", "user_permissions")},
        ),
        ("Important dates", {"fields": ("last_signed_in_at", "date_joined")}),
    )
    list_filter = ("is_active", "is_staff", "is_superuser")
    search_help_text = "Username, name or email"

    @admin.display(description="last signed in", ordering="last_login")
    def last_signed_in_at(self, user: User) -> str:
        return time_cell(user.last_login, never="never")

    @admin.display(description="rights")
    def rights(self, user: User) -> str:
        if user.is_superuser:
            return "everything (superuser)"
        if not user.is_staff:
            return "none"
        groups = sorted(group.name for group in user.groups.all())
        return ", ".join(groups) or (
            "individual permissions" if user.user_permissions.all() else "none"
        )

    def get_changelist(self, request: HttpRequest, **kwargs: Any) -> type[StaffList]:
        return StaffList

    def change_view(
        self, request: HttpRequest, object_id: str, form_url: str = "", extra_context: Any = None
    ) -> HttpResponse:
        context = dict(extra_context or {})
        user = self.get_object(request, unquote(object_id))
        if isinstance(user, User) and may_view(request, AuditEntry):
            query = EntryQuery(by=user.get_username(), without=hidden_bookings(request))
            context["latest"] = rows(request, map(entry_of, read_entries(query, limit=SHOWN)))
            context["all_url"] = reverse("audit_trail", query={"who": user.get_username()})
        answer: HttpResponse = super().change_view(request, object_id, form_url, context)
        return answer

    def get_readonly_fields(self, request: HttpRequest, obj: User | None = None) -> Any:
        fields = (*super().get_readonly_fields(request, obj), "last_signed_in_at", "date_joined")
        return fields if _is_superuser(request) else (*fields, *RIGHTS)

    def has_reset_permission(self, request: HttpRequest, object_id: Any = None) -> bool:
        """Whether a superuser is looking at another user who has a second factor."""
        if not _is_superuser(request):
            return False
        user = self.get_object(request, unquote(str(object_id)))
        return isinstance(user, User) and user != request.user and has_factor(user)

    @action(
        description="Remove second factor…",
        icon="phonelink_erase",
        permissions=["reset"],
        url_path="remove-second-factor",
        variant=ActionVariant.WARNING,
    )
    def remove_second_factor(self, request: HttpRequest, object_id: str) -> HttpResponse:
        user = self.get_object(request, unquote(object_id))
        if not isinstance(user, User):
            raise Http404
        if request.method == "POST":
            reset_factor(user=user, actor=staff_of(request))
            messages.success(request, f"The second factor of {user} was removed.")
            return HttpResponseRedirect(url_of(user))
        return page(
            self,
            request,
            "admin/confirm.html",
            obj=user,
            title="Remove a second factor",
            question=f"Remove the second factor and the backup codes of {user}?",
            facts=[
                "Do this only for a person who lost their second factor. Make sure that the request"
                " is really from them: afterwards, their password is enough to set up a new one.",
            ],
            button="Remove",
            danger=True,
            back=url_of(user),
        )

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        if isinstance(obj, User):
            # With a member's password or address, staff could act for the merchant.
            if Membership.objects.filter(user=obj).exists():
                return False
            if obj.is_superuser and not _is_superuser(request):
                return False
        return bool(super().has_change_permission(request, obj))


@admin.register(Group)
class GroupAdmin(BaseGroupAdmin, BackOfficeAdmin):  # type: ignore[misc]  # the bases agree at run time
    list_display = ("name",)
    search_help_text = "Name of the group"
    actions = None

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return _is_superuser(request)

    has_add_permission = has_delete_permission = has_change_permission


def _is_superuser(request: HttpRequest) -> bool:
    return bool(getattr(request.user, "is_superuser", False))
