"""The staff of the back office and their roles."""

from __future__ import annotations

from typing import Any

from django import forms
from django.contrib import admin, messages
from django.contrib.admin.utils import unquote
from django.contrib.auth.admin import UserAdmin as BaseUserAdmin
from django.contrib.auth.models import Group, User
from django.db.models import Count, Q, QuerySet
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import reverse
from django.utils.html import format_html_join
from unfold.decorators import action
from unfold.enums import ActionVariant
from unfold.forms import AdminPasswordChangeForm, UserChangeForm, UserCreationForm
from unfold.widgets import UnfoldAdminCheckboxSelectMultipleWidget

from accounts.second_factor import has_factor
from audit.models import AuditEntry
from merchants.models import Membership
from merchants.people.credentials import reset_factor
from operators.admin.roles import (
    describe,
    is_built_in,
    name_of_right,
    rights_of,
    set_rights,
    staff_rights,
)
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

MANAGE = "sign_in.manage_staff"
SUPERUSERS_ONLY = ("is_superuser", "user_permissions")


class RolesField(forms.ModelMultipleChoiceField):  # type: ignore[type-arg]
    """The roles of a person, each with its description."""

    widget = UnfoldAdminCheckboxSelectMultipleWidget

    def label_from_instance(self, obj: Any) -> str:
        return f"{obj.name}: {describe(obj)}"


class StaffForm(UserChangeForm):
    """The theme's form, with the roles described."""

    groups = RolesField(
        queryset=Group.objects.prefetch_related("permissions"), required=False, label="Roles"
    )


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

    Administrators give roles, but not to themselves: another administrator must do that. Only
    superusers give single permissions or change superusers.
    """

    actions_detail = ("remove_second_factor",)
    change_form_outer_after_template = "admin/actions_of_person.html"
    records_itself = True  # audit/people.py does
    form = StaffForm
    add_form = NewUserForm
    change_password_form = AdminPasswordChangeForm
    list_display = ("username", "email", "is_active", "rights", "last_signed_in_at")
    fieldsets = (
        (None, {"fields": ("username", "password")}),
        ("Personal info", {"fields": ("first_name", "last_name", "email")}),
        (
            "Access",
            {"fields": ("is_active", "is_staff", "is_superuser", "groups", "user_permissions")},
        ),
        ("Important dates", {"fields": ("last_signed_in_at", "date_joined")}),
    )
    list_filter = ("is_active", "is_staff", "is_superuser")
    search_help_text = "Username, name or email"

    @admin.display(description="last signed in", ordering="last_login")
    def last_signed_in_at(self, user: User) -> str:
        return time_cell(user.last_login, never="never")

    @admin.display(description="roles")
    def rights(self, user: User) -> str:
        if user.is_superuser:
            return "everything (superuser)"
        if not user.is_staff:
            return "none"
        roles = sorted(group.name for group in user.groups.all())
        return ", ".join(roles) or (
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
        if _is_superuser(request):
            return fields
        gives_roles = staff_of(request).has_perm(MANAGE) and obj != request.user
        return fields if gives_roles else (*fields, "groups")

    def get_fieldsets(self, request: HttpRequest, obj: User | None = None) -> Any:
        """Leaves Django's list of permissions to superusers."""
        sets = super().get_fieldsets(request, obj)
        if obj is None or _is_superuser(request):
            return sets
        return [
            (
                title,
                {
                    **options,
                    "fields": [one for one in options["fields"] if one not in SUPERUSERS_ONLY],
                },
            )
            for title, options in sets
        ]

    def has_reset_permission(self, request: HttpRequest, object_id: Any = None) -> bool:
        """Whether an administrator is looking at another user who has a second factor."""
        if not staff_of(request).has_perm(MANAGE):
            return False
        user = self.get_object(request, unquote(str(object_id)))
        if not isinstance(user, User) or user == request.user:
            return False
        may_change = user.is_staff and self.has_change_permission(request, user)
        return has_factor(user) and (may_change or _is_superuser(request))

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


def _choices() -> list[tuple[str, list[tuple[str, str]]]]:
    """All rights in words, by section."""
    by_section: dict[str, list[tuple[str, str]]] = {}
    for right in staff_rights():
        by_section.setdefault(right.section, []).append((name_of_right(right), right.words))
    return list(by_section.items())


class RoleForm(forms.ModelForm):  # type: ignore[type-arg]
    rights = forms.MultipleChoiceField(
        choices=_choices,
        required=False,
        widget=UnfoldAdminCheckboxSelectMultipleWidget,
        label="People with this role may",
    )

    class Meta:
        model = Group
        fields = ["name"]

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        if self.instance.pk:
            self.initial["rights"] = [name_of_right(one) for one in rights_of(self.instance)]


@admin.register(Group)
class RoleAdmin(BackOfficeAdmin):
    """Roles. The service makes the built-in ones, and keeps their names and rights."""

    form = RoleForm
    list_display = ("name", "what_it_is", "people")
    search_fields = ("name",)
    search_help_text = "Name of the role"
    ordering = ("name",)
    actions = None

    def get_queryset(self, request: HttpRequest) -> QuerySet[Group]:
        groups: QuerySet[Group] = super().get_queryset(request)
        active = Count("user", filter=Q(user__is_active=True))
        return groups.annotate(active_people=active).prefetch_related("permissions")

    @admin.display(description="what people with this role do")
    def what_it_is(self, group: Group) -> str:
        return describe(group)

    @admin.display(description="people", ordering="active_people")
    def people(self, group: Group) -> int:
        return int(getattr(group, "active_people", 0))

    def get_fields(self, request: HttpRequest, obj: Group | None = None) -> tuple[str, ...]:
        if obj is None or self.has_change_permission(request, obj):
            return ("name", "rights")
        return ("name", "what_it_is", "rights_in_words")

    def get_readonly_fields(self, request: HttpRequest, obj: Group | None = None) -> Any:
        return ("what_it_is", "rights_in_words")

    @admin.display(description="rights")
    def rights_in_words(self, group: Group) -> str:
        words = ((right.words,) for right in rights_of(group))
        return format_html_join("", "<p>{}</p>", words) or "none"

    def save_related(self, request: HttpRequest, form: Any, formsets: Any, change: bool) -> None:
        super().save_related(request, form, formsets, change)
        chosen = form.cleaned_data["rights"]
        set_rights(form.instance, [one for one in staff_rights() if name_of_right(one) in chosen])

    def has_add_permission(self, request: HttpRequest) -> bool:
        return self.has_change_permission(request)

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Superusers change all roles; administrators those made here that are not their own."""
        user: Any = request.user
        if user.is_superuser or not user.has_perm(MANAGE) or not isinstance(obj, Group):
            return bool(user.has_perm(MANAGE))
        return not is_built_in(obj) and not user.groups.filter(pk=obj.pk).exists()

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        in_use = isinstance(obj, Group) and obj.user_set.exists()
        return self.has_change_permission(request, obj) and not in_use


def _is_superuser(request: HttpRequest) -> bool:
    return bool(getattr(request.user, "is_superuser", False))
