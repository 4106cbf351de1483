"""The staff of the back office and their roles."""

from __future__ import annotations

from typing import Any

from axes.models import AccessAttempt
from django import forms
from django.conf import settings
from django.contrib import admin, messages
from django.contrib.admin.utils import unquote
from django.contrib.auth.admin import UserAdmin as BaseUserAdmin
from django.contrib.auth.models import Group, Permission, User
from django.core.exceptions import PermissionDenied, ValidationError
from django.db.models import Count, Exists, OuterRef, Q, QuerySet
from django.db.models.functions import Now
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import reverse
from django.utils.html import format_html, format_html_join
from django.utils.translation import gettext as _
from django.utils.translation import gettext_noop
from unfold.decorators import action, display
from unfold.enums import ActionVariant
from unfold.forms import AdminPasswordChangeForm, UserChangeForm
from unfold.widgets import UnfoldAdminCheckboxSelectMultipleWidget

from accounts.models import SecondFactor
from accounts.sign_in.second_factor import has_factor
from audit.models import AuditAction, AuditEntry
from audit.people import record_on_user
from cases.models import Case
from cases.selectors import REPLACEMENT_PROPOSED
from core.backoffice.declarations import StaffRight
from core.backoffice.staff import names_of_staff_who_may
from core.backoffice.staff_roles import StaffRole
from core.texts import english, lazy
from merchants.models import Membership
from merchants.people.invitations import live_invitations
from operators.frame.base import (
    BackOfficeAdmin,
    BackOfficeList,
    Colours,
    ConditionFilter,
    KeptAdmin,
    label,
    staff_of,
    time_cell,
    url_of,
)
from operators.frame.reader import may_view
from operators.history.audit_trail import EntryQuery, entry_of, read_entries
from operators.history.audit_trail_page import hidden_bookings
from operators.history.entries import rows
from operators.history.timeline import SHOWN
from operators.sign_in.access import claims_of, end_access
from operators.sign_in.asked_changes import MOST
from operators.sign_in.asked_changes import describe as describe_change
from operators.sign_in.password_links import (
    ask_for_link,
    may_have_password,
    read_invitation,
    send_invitation,
)
from operators.sign_in.reach import NEEDS_TWO
from operators.sign_in.second_person import (
    IS_TO_CHANGE,
    NAME_AND_EMAIL,
    WITH_ROLE,
    WITHOUT_ROLE,
    ask_or_agree,
    digest_of,
    given_by_two,
    lock_roles,
    needs_two,
    roles_for_two,
    waiting_changes,
    waiting_for,
)
from operators.sign_in.two_people import TwoPeopleForm, TwoPeoplePage
from operators.staff.people import MANAGE, PersonPage
from operators.staff.roles import (
    describe,
    is_built_in,
    name_of,
    name_of_permission,
    name_of_right,
    names_of_built_in,
    rights_of,
    set_rights,
    staff_rights,
)
from wallets.approvals import waiting_approvals

admin.site.unregister(User)
admin.site.unregister(Group)

# The names on pages: "New person", "Select role to change", "Operator". The models are Django's, so
# a migration is not possible. What is stored of a role is its `name`, or `english(role)`.
User._meta.verbose_name, User._meta.verbose_name_plural = lazy("person"), lazy("people")
Group._meta.verbose_name, Group._meta.verbose_name_plural = lazy("role"), lazy("roles")
Group.__str__ = name_of  # type: ignore[assignment]
Permission.__str__ = name_of_permission  # type: ignore[assignment]

SET_PASSWORD = gettext_noop("Set password: %s")  # Django's title, which it does not translate
USERNAME_HELP = lazy("For the sign-in, such as anna: letters, digits and @ . + - _")
SUPERUSERS_ONLY = ("is_superuser", "password", "user_permissions")


class RolesField(forms.ModelMultipleChoiceField):  # type: ignore[type-arg]
    """The roles of a person, each with its description and a mark if two administrators give it."""

    widget = UnfoldAdminCheckboxSelectMultipleWidget

    def label_from_instance(self, obj: Any) -> str:
        name = _("%(right)s (two administrators)") % {"right": obj} if given_by_two(obj) else obj
        return f"{name}: {describe(obj)}"


class StaffForm(TwoPeopleForm, UserChangeForm):
    """The theme's form, with the roles described.

    Who receives the emails of a person can take over their account. So two administrators change
    the address of a person who has signed in before, or has rights that need two.
    """

    groups = RolesField(
        queryset=Group.objects.prefetch_related("permissions"), required=False, label=lazy("Roles")
    )
    right = MANAGE
    unsaved = lazy(
        "Not saved yet: this could let somebody else sign in as this person. Ask another"
        " administrator to save the same name and email within a day."
    )

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        if self.asked is not None:  # the roles of now, with what a colleague asked for
            has = {str(group.pk) for group in self.initial.get("groups", ())}
            given, taken = self.asked.getlist("give"), self.asked.getlist("take")
            self.initial["groups"] = [*has.union(given).difference(taken)]

    def needs_two(self) -> str:
        if not {"email", "username"} & set(self.changed_data):
            return ""
        user, name, email = self.instance, self.cleaned_data["username"], self.cleaned_data["email"]
        lock_roles()
        known = user.last_login is not None
        watched = known or needs_two(user.groups.all(), user) or waiting_for(user).exists()
        return NAME_AND_EMAIL % {"name": name, "email": email or "none"} if watched else ""

    def data_of_change(self) -> dict[str, Any]:
        name, email = self.cleaned_data["username"], self.cleaned_data["email"]
        data = _data_about(self.instance, NAME_AND_EMAIL, name=name, email=email or "none")
        return data | {"typed": {"username": [name], "email": [email]}}

    def about(self) -> User:
        user: User = self.instance
        return user


class InviteForm(forms.ModelForm):  # type: ignore[type-arg]
    """A new member of staff, who chooses a password with the link in an email."""

    groups = RolesField(
        queryset=Group.objects.prefetch_related("permissions"), required=False, label=lazy("Roles")
    )

    class Meta:
        model = User
        fields = ["username", "first_name", "last_name", "email", "groups"]
        help_texts = {
            "username": USERNAME_HELP,
            "email": lazy("Receives a link to set a password. The link works for three days."),
        }

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["email"].required = True

    def clean_email(self) -> str:
        email: str = self.cleaned_data["email"].lower()
        if User.objects.filter(Q(email__iexact=email) | Q(username__iexact=email)).exists():
            raise ValidationError(_("This address already belongs to a person here."))
        return email

    def save(self, commit: bool = True) -> User:
        self.instance.is_staff = True
        self.instance.set_unusable_password()
        user: User = super().save(commit=commit)
        return user


class StaffList(BackOfficeList):
    """All users but the members of merchants' accounts, who have a list of their own."""

    def get_queryset(
        self, request: HttpRequest, exclude_parameters: list[str | None] | None = None
    ) -> QuerySet[User]:
        users: QuerySet[User] = super().get_queryset(request, exclude_parameters)
        has_rights = Q(is_staff=True) | Q(is_superuser=True)
        factors = SecondFactor.objects.filter(user=OuterRef("pk"), confirmed=True)
        staff = users.filter(Q(membership=None) | has_rights).annotate(has_factor=Exists(factors))
        return staff.prefetch_related("groups", "user_permissions")


FACTORS = ("factor", "factor_to_remove")  # a page has one of these fields
FACTOR_ON, FACTOR_OFF = lazy("on"), lazy("not set up")
NEVER_SIGNED_IN = Q(is_staff=True, is_active=True, last_login=None)
# Too many wrong passwords, within AXES_COOLOFF_TIME.
LOCKED_OUT = Q(
    is_staff=True,
    username__in=AccessAttempt.objects.filter(
        failures_since_start__gte=settings.AXES_FAILURE_LIMIT,
        attempt_time__gte=Now() - settings.AXES_COOLOFF_TIME,
    ).values("username"),
)


class ChangeFilter(ConditionFilter):
    title = lazy("roles and email")
    parameter_name = "change"
    conditions = {"waits": IS_TO_CHANGE}
    names = {"waits": lazy("A change waits for another administrator")}


class SignInFilter(ConditionFilter):
    title = lazy("sign-in")
    parameter_name = "sign-in"
    conditions = {"never": NEVER_SIGNED_IN, "locked-out": LOCKED_OUT}
    names = {"never": lazy("Never signed in"), "locked-out": lazy("Locked out")}


@admin.register(User)
class UserAdmin(PersonPage, TwoPeoplePage, BaseUserAdmin, KeptAdmin):  # type: ignore[type-arg, misc]
    """Users are switched off, never deleted: the audit trail names them.

    Administrators give roles, but not to themselves: another administrator must do that. Only
    superusers give single permissions or change superusers.
    """

    actions_detail = ("send_link", *PersonPage.person_actions, "end_access")
    change_form_outer_after_template = "admin/actions_of_person.html"
    records_itself = True  # audit/people.py does
    add_button = lazy("Invite")
    form = StaffForm
    add_form = InviteForm
    add_fieldsets = ((None, {"fields": InviteForm.Meta.fields}),)
    change_password_form = AdminPasswordChangeForm
    list_display = ("username", "email", "is_active", "rights", "factor", "last_signed_in_at")
    fieldsets = (
        (None, {"fields": ("username", "first_name", "last_name", "email", "invitation")}),
        (
            lazy("Access"),
            {"fields": ("is_active", *FACTORS, "last_signed_in_at", "groups", "date_joined")},
        ),
        (
            lazy("Advanced"),
            {
                "classes": ["collapse"],
                "fields": ("is_staff", "is_superuser", "password", "user_permissions"),
            },
        ),
    )
    list_filter = (ChangeFilter, SignInFilter, "is_active", "is_staff", "is_superuser")
    search_help_text = lazy("Username, name or email")
    help_texts = {
        "username": USERNAME_HELP,
        "is_active": lazy("If off, the person cannot sign in."),
        "is_staff": lazy("If off, the person cannot open the back office."),
    }

    @admin.display(description=lazy("last signed in"), ordering="last_login")
    def last_signed_in_at(self, user: User) -> str:
        return time_cell(user.last_login, never=_("never"))

    @display(
        description=lazy("second factor"),
        label=Colours({FACTOR_ON: "success", FACTOR_OFF: "warning"}),
    )
    def factor(self, user: User) -> str:
        """The state of the second factor."""
        known = getattr(user, "has_factor", None)
        return str(FACTOR_ON if (has_factor(user) if known is None else known) else FACTOR_OFF)

    @admin.display(description=lazy("second factor"))
    def factor_to_remove(self, user: User) -> str:
        """The second factor and the link that removes it: no fourth button fits beside the
        title."""
        page = url_of(user, "remove_second_factor")
        words = _("Remove second factor…")
        link = format_html('<a href="{}" class="text-link">{}</a>', page, words)
        return format_html("{} {}", label(str(FACTOR_ON), "success"), link)

    def get_actions_detail(self, request: HttpRequest, object_id: Any) -> list[Any]:
        """Leaves the removal of a second factor to its field. Names the link of an invitation."""
        actions = {
            one.method.original_function_name: one
            for one in super().get_actions_detail(request, object_id)
        }
        actions.pop("remove_second_factor", None)
        user = self.get_object(request, unquote(str(object_id)))
        if "send_link" in actions and isinstance(user, User) and read_invitation(user):
            actions["send_link"].description = _("Send the invitation again…")
        return list(actions.values())

    @admin.display(description=lazy("invitation"))
    def invitation(self, user: User) -> str:
        return read_invitation(user)

    @admin.display(description=lazy("roles"))
    def rights(self, user: User) -> str:
        if user.is_superuser:
            return _("everything (superuser)")
        if not user.is_staff:
            return _("none")
        roles = sorted(map(str, user.groups.all()))
        return ", ".join(roles) or (
            _("individual permissions") if user.user_permissions.all() else _("none")
        )

    def get_changelist(self, request: HttpRequest, **kwargs: Any) -> type[StaffList]:
        return StaffList

    def change_view(
        self, request: HttpRequest, object_id: str, form_url: str = "", extra_context: Any = None
    ) -> HttpResponse:
        context = dict(extra_context or {})
        user = self.get_object(request, unquote(object_id))
        if isinstance(user, User) and may_view(request, AuditEntry):
            hidden = hidden_bookings(request)
            query = EntryQuery(by=user.get_username(), without=hidden)
            context["hides_bookings"] = bool(hidden)
            context["latest"] = rows(request, map(entry_of, read_entries(query, limit=SHOWN)))
            context["all_url"] = reverse("audit_trail", query={"who": user.get_username()})
        answer: HttpResponse = super().change_view(request, object_id, form_url, context)
        return answer

    def get_readonly_fields(self, request: HttpRequest, obj: User | None = None) -> Any:
        fields = super().get_readonly_fields(request, obj)
        fields = (*fields, "invitation", *FACTORS, "last_signed_in_at", "date_joined")
        if _is_superuser(request):
            return fields
        gives_roles = staff_of(request).has_perm(MANAGE) and obj != request.user
        return fields if gives_roles else (*fields, "groups")

    def get_fieldsets(self, request: HttpRequest, obj: User | None = None) -> Any:
        """Leaves Django's list of permissions to superusers, and the invitation to new people."""
        sets = super().get_fieldsets(request, obj)
        if obj is None:
            return sets
        hidden = {*(() if _is_superuser(request) else SUPERUSERS_ONLY)}
        hidden |= set() if read_invitation(obj) else {"invitation"}
        hidden.add(FACTORS[0] if self.has_reset_permission(request, obj.pk) else FACTORS[1])
        return [
            (title, {**options, "fields": [one for one in options["fields"] if one not in hidden]})
            for title, options in sets
        ]

    def user_of(self, obj: User) -> User:
        return obj

    def may_protect(self, request: HttpRequest, obj: User) -> bool:
        """Administrators act for staff, and superusers for members too."""
        if _is_superuser(request):
            return True
        manages = staff_of(request).has_perm(MANAGE)
        return manages and obj.is_staff and self.has_change_permission(request, obj)

    def has_add_permission(self, request: HttpRequest) -> bool:
        return bool(request.user.has_perm(MANAGE))

    def save_model(self, request: HttpRequest, obj: User, form: Any, change: bool) -> None:
        super().save_model(request, obj, form, change)
        if not change and may_have_password(obj):
            messages.success(
                request, _("The invitation is being sent to %(email)s.") % {"email": obj.email}
            )

    def response_add(
        self, request: HttpRequest, obj: User, post_url_continue: str | None = None
    ) -> HttpResponse:
        """Opens the person's page. A message already says that the invitation is being sent."""
        if "_addanother" in request.POST or not may_have_password(obj):
            return super().response_add(request, obj, post_url_continue)
        return HttpResponseRedirect(url_of(obj))

    def save_related(self, request: HttpRequest, form: Any, formsets: Any, change: bool) -> None:
        """Gives and takes the chosen roles; those that need two once two administrators do so."""
        user, actor = form.instance, staff_of(request)
        waiting, agreed = [], False
        if "groups" in form.cleaned_data:
            lock_roles()
            wants = set(form.cleaned_data["groups"])
            needs = roles_for_two(user=user, wants=wants)
            pairs = {"give": needs & wants, "take": needs - wants}
            typed = {name: [str(one.pk) for one in some] for name, some in pairs.items()}
            for role in sorted(needs, key=str):
                message = WITH_ROLE if role in wants else WITHOUT_ROLE
                # A request ends when the role has other rights or another name.
                rights = sorted(role.permissions.values_list("pk", flat=True))
                what = f"{message % {'role': role.name}}, {digest_of(role.pk, rights)}"
                data = _data_about(user, message, role=role.name) | {"typed": typed}
                if not ask_or_agree(what=what, about=user, actor=actor, right=MANAGE, data=data):
                    wants ^= {role}
                    waiting.append(_(message) % {"role": role})
            form.cleaned_data["groups"] = wants
            is_same = form.changed_data == ["groups"] and wants == set(user.groups.all())
            request.is_undone = bool(waiting) and is_same  # type: ignore[attr-defined]
            agreed = change and len(needs) > len(waiting)
        super().save_related(request, form, formsets, change)
        if agreed:
            request.is_undone = form.changed_data == ["groups"]  # type: ignore[attr-defined]
            told = {"user": user, "roles": self.rights(user)}
            messages.success(request, _("%(user)s now has these roles: %(roles)s.") % told)
        if not change and may_have_password(user):
            send_invitation(user=user, by=actor)
        people = waiting and names_of_staff_who_may(MANAGE, actor.username, user.username)
        for what in waiting:
            messages.warning(
                request,
                _(
                    "Not changed yet: %(what)s. Ask another administrator to agree within a day."
                    " These people see it on their first page: %(people)s."
                )
                % {"what": what, "people": people or _("nobody yet")},
            )

    def user_change_password(self, request: HttpRequest, id: str, form_url: str = "") -> Any:
        """Nobody but superusers sets the password of another person: links in emails do."""
        if not _is_superuser(request):
            raise PermissionDenied
        return super().user_change_password(request, id, form_url)

    def has_send_link_permission(self, request: HttpRequest, object_id: Any = None) -> bool:
        """Offers the action for active staff with an email and without company sign-in only."""
        obj = self.get_object(request, unquote(str(object_id)))
        if not isinstance(obj, User) or not self.may_protect(request, obj):
            return False
        return obj.is_staff and obj.is_active and obj.email != "" and may_have_password(obj)

    @action(
        description=lazy("Send a password link…"),
        icon="outgoing_mail",
        permissions=["send_link"],
        url_path="send-link",
    )
    def send_link(self, request: HttpRequest, object_id: str) -> HttpResponse:
        """Sends an invitation again until the person has signed in."""
        person = self.get_object(request, unquote(object_id))
        is_invited = isinstance(person, User) and bool(read_invitation(person))

        def act(obj: Any, user: User) -> str:
            actor = staff_of(request)
            if is_invited:
                send_invitation(user=user, by=actor)
            else:
                ask_for_link(email=user.email)
            note = "Invitation sent again" if is_invited else "Password link sent"
            record_on_user(user, AuditAction.USER_CHANGED, actor=actor, note=note)
            return _("A link is being sent to %(email)s, unless three were sent this hour.") % {
                "email": user.email
            }

        works = (
            _("The link works once, within three days. Links that were sent before end.")
            if is_invited
            else _("The link works once, within an hour. The old password works until then.")
        )
        return self.confirm(
            request,
            object_id,
            title=_("Send the invitation again") if is_invited else _("Send a password link"),
            question=_("Send {} the invitation again?")
            if is_invited
            else _("Send {} a link that sets a new password?"),
            facts=[works],
            act=act,
        )

    def has_end_access_permission(self, request: HttpRequest, object_id: Any = None) -> bool:
        """Offers the action for active colleagues."""
        obj = self.get_object(request, unquote(str(object_id)))
        if not isinstance(obj, User) or obj == request.user or not obj.is_staff:
            return False
        return self.may_protect(request, obj) and (obj.is_active or request.method == "POST")

    @action(
        description=lazy("End access…"),
        icon="person_off",
        permissions=["end_access"],
        url_path="end-access",
        variant=ActionVariant.DANGER,
    )
    def end_access(self, request: HttpRequest, object_id: str) -> HttpResponse:
        def act(obj: Any, user: User) -> str:
            claims = end_access(user=user, actor=staff_of(request))
            return _("%(user)s can no longer sign in. Claims back in the queue: %(claims)s.") % {
                "user": user,
                "claims": claims,
            }

        return self.confirm(
            request,
            object_id,
            title=_("End access"),
            question=_("End the access of {}?"),
            facts=[
                _(
                    "Their sessions end at once, their claimed orders go back to the queue, their"
                    " open invitations are withdrawn, and their requests for a second person end."
                ),
                *self._what_ends(request, object_id),
                _(
                    "What they did stays in the audit trail. To let them in again, turn on"
                    " “Active”."
                ),
            ],
            act=act,
        )

    def _what_ends(self, request: HttpRequest, object_id: str) -> list[str]:
        """The claims, the invitations and the requests of the person, in words. Those who read the
        audit trail see each request."""
        user = self.get_object(request, unquote(object_id))
        if user is None:
            return []
        asked = waiting_changes().filter(asked_by=user)
        words = _(
            "Now: claimed orders %(claims)s, open invitations %(invitations)s, requests for a"
            " second person %(requests)s."
        ) % {
            "claims": claims_of(user),
            "invitations": live_invitations().filter(invited_by=user).count(),
            "requests": asked.count(),
        }
        listed = asked[:MOST] if may_view(request, AuditEntry) else ()
        ends = _("Ends: {change}.")
        lines = [words, *(format_html(ends, change=describe_change(change)) for change in listed)]
        stay = waiting_approvals().filter(asked_by=user).count()
        stay += Case.objects.filter(REPLACEMENT_PROPOSED, replacement_proposed_by=user).count()
        if stay:
            text = _(
                "Bookings and replacements that they asked for and that still wait: %(number)s."
                " They stay, and another person decides on them."
            )
            lines.append(text % {"number": stay})
        return lines

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        if isinstance(obj, User):
            # With a member's password or address, staff could act for the merchant.
            if Membership.objects.filter(user=obj).exists():
                return False
            if obj.is_superuser and not _is_superuser(request):
                return False
        return bool(super().has_change_permission(request, obj))


def _choices() -> list[tuple[str, list[tuple[str, str]]]]:
    """All rights in words, by section, with a mark on those that two administrators give."""
    by_section: dict[str, list[tuple[str, str]]] = {}
    for right in staff_rights():
        words = _("%(right)s (two administrators)") if _needs_two(right) else "%(right)s"
        choice = (name_of_right(right), words % {"right": right.words})
        by_section.setdefault(right.section.label, []).append(choice)
    return list(by_section.items())


def _needs_two(right: StaffRight) -> bool:
    return bool(NEEDS_TWO & set(right.permissions))


class RoleForm(TwoPeopleForm):
    """A role. Two administrators add rights that need two to a role that people have."""

    rights = forms.MultipleChoiceField(
        choices=_choices,
        required=False,
        widget=UnfoldAdminCheckboxSelectMultipleWidget,
        label=lazy("People with this role may"),
    )

    class Meta:
        model = Group
        fields = ["name"]

    right = MANAGE
    unsaved = lazy(
        "Not changed yet: people have this role. Ask another administrator to give it"
        " the same rights within a day."
    )

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        if self.instance.pk:
            has = [name_of_right(one) for one in rights_of(self.instance)]
            self.initial.setdefault("rights", has)

    def clean_name(self) -> str:
        """The name, which nobody may mistake for a built-in role in any language."""
        name: str = self.cleaned_data["name"]
        if not is_built_in(self.instance) and name.casefold() in names_of_built_in():
            raise forms.ValidationError(_("A built-in role has this name. Choose another one."))
        return name

    def needs_two(self) -> str:
        if self.instance.pk is None:
            return ""
        lock_roles()
        has = {name_of_right(one) for one in rights_of(self.instance)}
        more = set(self.cleaned_data["rights"]) - has
        rights = [one for one in staff_rights() if name_of_right(one) in more]
        asked = [english(one.words) for one in rights if _needs_two(one)]
        if not asked or not self.instance.user_set.exists():
            return ""
        self._asked = asked
        # All of them are longer than a request, which ends when other people have the role.
        people = sorted(self.instance.user_set.values_list("pk", flat=True))
        return f"role {self.instance.pk}: {', '.join(asked)[:400]}, {digest_of(asked, people)}"

    def data_of_change(self) -> dict[str, Any]:
        return {"row": ["role", self.instance.pk], "words": [[one, {}] for one in self._asked]}


@admin.register(Group)
class RoleAdmin(TwoPeoplePage, BackOfficeAdmin):
    """Roles. The service makes the built-in ones, and keeps their names and rights."""

    form = RoleForm
    list_display = ("title", "description", "people")
    search_fields = ("name",)
    search_help_text = lazy("Name of the role")
    ordering = ("name",)
    actions = None

    def get_queryset(self, request: HttpRequest) -> QuerySet[Group]:
        groups: QuerySet[Group] = super().get_queryset(request)
        active = Count("user", filter=Q(user__is_active=True))
        return groups.annotate(active_people=active).prefetch_related("permissions")

    def search(
        self, queryset: QuerySet[Group], term: str, request: HttpRequest
    ) -> tuple[QuerySet[Group], bool]:
        """Finds a built-in role by its name in the reader's language, too."""
        names = [role.value for role in StaffRole if term.lower() in _(role.value).lower()]
        return queryset.filter(Q(name__icontains=term) | Q(name__in=names)), False

    @admin.display(description=lazy("name"), ordering="name")
    def title(self, group: Group) -> str:
        return str(group)

    @admin.display(description=lazy("description"))
    def description(self, group: Group) -> str:
        return describe(group)

    @admin.display(description=lazy("people"), ordering="active_people")
    def people(self, group: Group) -> int:
        return int(getattr(group, "active_people", 0))

    def get_fields(self, request: HttpRequest, obj: Group | None = None) -> tuple[str, ...]:
        name = "title" if obj and is_built_in(_stored_role(obj)) else "name"
        if obj is None or self.has_change_permission(request, obj):
            return (name, "rights")
        return (name, "description", "rights_in_words")

    def get_readonly_fields(self, request: HttpRequest, obj: Group | None = None) -> Any:
        return ("title", "description", "rights_in_words")

    @admin.display(description=lazy("rights"))
    def rights_in_words(self, group: Group) -> str:
        words = ((right.words,) for right in rights_of(group))
        return format_html_join("", "<p>{}</p>", words) or _("none")

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
        obj = _stored_role(obj)
        return not is_built_in(obj) and not user.groups.filter(pk=obj.pk).exists()

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        in_use = isinstance(obj, Group) and obj.user_set.exists()
        return self.has_change_permission(request, obj) and not in_use


def _stored_role(group: Group) -> Group:
    """The role without the name that a form may have given it."""
    return Group.objects.filter(pk=group.pk).first() or group


def _data_about(user: User, message: str, **values: str) -> dict[str, Any]:
    """The data of a request about a person (operators/sign_in/asked_changes.py)."""
    return {"url": url_of(user), "row": ["person", user.pk], "words": [[message, values]]}


def _is_superuser(request: HttpRequest) -> bool:
    return bool(getattr(request.user, "is_superuser", False))
