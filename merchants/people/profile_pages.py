"""The pages of the member's own profile: password, second factor and sessions."""

from typing import Any

from django.conf import settings
from django.contrib import messages
from django.contrib.auth import update_session_auth_hash
from django.forms.models import model_to_dict
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.template.response import TemplateResponse
from django.urls import reverse
from django.utils.translation import gettext as _
from django.views.decorators.debug import sensitive_post_parameters
from django.views.decorators.http import require_http_methods, require_POST, require_safe
from django_otp import login

from accounts.form_fields import posted
from accounts.models import BackupCode
from accounts.preferences.time_zones import PreferencesForm, choose_preferences, preferences_of
from accounts.sign_in.next_page import next_page
from accounts.sign_in.password_forms import LimitedPasswordChangeForm
from accounts.sign_in.second_factor import (
    WRONG_CODE,
    check_code,
    has_factor,
    must_show_factor,
    qr_code,
    show_factor,
    typed_key,
    waiting_factor,
)
from merchants.frame.forms import CodeForm, TurnOnForm
from merchants.frame.pages import confirm, show
from merchants.people.access import Member, member_page
from merchants.people.credentials import (
    change_password,
    make_backup_codes,
    turn_factor_off,
    turn_factor_on,
)
from merchants.people.members import must_have_factor
from merchants.people.sessions import (
    complete_sessions_of,
    device_name,
    end_member_sessions,
    sessions_of,
)


@require_safe
@member_page(protects=True)
def profile(request: HttpRequest, member: Member) -> HttpResponse:
    """Shows the member's role, how they sign in, and their sessions."""
    return show(
        request,
        member,
        "merchants/profile.html",
        title=_("Profile"),
        has_factor=has_factor(member.user),
        backup_codes=BackupCode.objects.filter(factor__user=member.user).count(),
        sessions=[(one, device_name(one.device)) for one in complete_sessions_of(member.user)],
        this_session=request.session.session_key,
        session_hours=settings.MERCHANT_SESSION_HOURS,
        idle_minutes=settings.MERCHANT_SESSION_IDLE_MINUTES,
    )


@require_http_methods(["GET", "HEAD", "POST"])
@sensitive_post_parameters()
@member_page(protects=True)
def password(request: HttpRequest, member: Member) -> HttpResponse:
    """Changes the member's password and ends their other sessions."""
    form = LimitedPasswordChangeForm(request, member.user, posted(request))
    if form.is_valid():
        change_password(user=member.user, password=form.cleaned_data["new_password1"])
        update_session_auth_hash(request, member.user)
        messages.success(request, _("Your password was changed. Your other sessions have ended."))
        return _back()
    return confirm(
        request,
        member,
        title=_("Change your password"),
        question=_("Choose a new password."),
        facts=[_("You stay signed in here and are signed out everywhere else.")],
        form=form,
        button=_("Change password"),
        back=reverse("merchants:profile"),
    )


@require_http_methods(["GET", "HEAD", "POST"])
@member_page()
def choose_zone(request: HttpRequest, member: Member) -> HttpResponse:
    """Chooses the language and the time zone in which the member reads pages."""
    form = PreferencesForm(posted(request), initial=model_to_dict(preferences_of(member.user)))
    if form.is_valid():
        saved = choose_preferences(user=member.user, request=request, **form.cleaned_data)
        messages.success(request, saved)
        return _back()
    return confirm(
        request,
        member,
        title=_("Language and time zone"),
        question=_("In which language and time zone do you want to read pages?"),
        facts=[
            _(
                "Pages, emails and XLSX files use both. CSV files and filters by day use the time"
                " zone; the words of CSV files stay English. Other browsers in which you are signed"
                " in follow after your next sign-in."
            ),
            _("Days of spending stay days in UTC. The API and JSON files stay in UTC, too."),
        ],
        form=form,
        button=_("Save"),
        back=reverse("merchants:profile"),
    )


@require_http_methods(["GET", "HEAD", "POST"])
@member_page(protects=True)
def two_factor(request: HttpRequest, member: Member) -> HttpResponse:
    """Asks for the second factor, once per session."""
    address = next_page(request, "merchants:overview")
    if not must_show_factor(request):
        return HttpResponseRedirect(address)
    form = CodeForm(posted(request))
    if form.is_valid():
        if show_factor(request, form.cleaned_data["code"]):
            return HttpResponseRedirect(address)
        form.add_error("code", WRONG_CODE)
    return TemplateResponse(
        request, "merchants/two_factor.html", {"title": _("Second factor"), "form": form}
    )


@require_http_methods(["GET", "HEAD", "POST"])
@sensitive_post_parameters()
@member_page(protects=True)
def two_factor_on(request: HttpRequest, member: Member) -> HttpResponse:
    """Asks for the password, then shows a QR code to scan. The first right code turns the second
    factor on.

    The response then shows the backup codes, which no other page shows.
    """
    if has_factor(member.user):
        messages.info(
            request, _("You already have a second factor. To replace it, turn it off first.")
        )
        return _back()
    required = must_have_factor(member.user)
    form = TurnOnForm(request)
    if form.is_valid():
        codes = turn_factor_on(user=member.user, code=form.cleaned_data["code"])
        if codes is not None:
            login(request, waiting_factor(member.user))
            address = next_page(request, "merchants:overview") if required else ""
            return _show_backup_codes(request, member, codes, turned_on=True, next=address)
        form.add_error("code", WRONG_CODE)
    factor = waiting_factor(member.user)
    return show(
        request,
        member,
        "merchants/two_factor_on.html",
        title=_("Turn on a second factor"),
        form=form,
        qr=qr_code(factor),
        key=typed_key(factor),
        required=required,
    )


@require_http_methods(["GET", "HEAD", "POST"])
@member_page()
def backup_codes(request: HttpRequest, member: Member) -> HttpResponse:
    """Replaces the backup codes, after one more code of the second factor, and shows the new ones,
    which no other page shows."""
    if not has_factor(member.user):
        return _back()
    form = CodeForm(posted(request))
    if form.is_valid():
        codes = make_backup_codes(user=member.user, code=form.cleaned_data["code"])
        if codes is not None:
            return _show_backup_codes(request, member, codes)
        form.add_error("code", WRONG_CODE)
    return confirm(
        request,
        member,
        title=_("New backup codes"),
        question=_("Replace your backup codes?"),
        facts=[_("Enter one more code to confirm. Your old backup codes stop working.")],
        form=form,
        button=_("Make new backup codes"),
        back=reverse("merchants:profile"),
    )


@require_http_methods(["GET", "HEAD", "POST"])
@member_page()
def two_factor_off(request: HttpRequest, member: Member) -> HttpResponse:
    """Turns the second factor off, after one more of its codes."""
    if not has_factor(member.user):
        return _back()
    required = must_have_factor(member.user)
    form = CodeForm(posted(request))
    if form.is_valid():
        if check_code(user=member.user, code=form.cleaned_data["code"]) is not None:
            turn_factor_off(user=member.user)
            messages.success(request, _("Your second factor was turned off."))
            return _back()
        form.add_error("code", WRONG_CODE)
    facts = [_("Enter one more code to confirm. Your backup codes stop working too.")]
    if required:
        facts.append(_("The owners of your account require one, so you set up a new one next."))
    return confirm(
        request,
        member,
        title=_("Turn off the second factor"),
        question=_("Replace your second factor?")
        if required
        else _("Sign in with only your password from now on?"),
        facts=facts,
        form=form,
        button=_("Turn off"),
        danger=True,
        back=reverse("merchants:profile"),
    )


@require_POST
@member_page(protects=True)
def end_session(request: HttpRequest, member: Member, session_id: int) -> HttpResponse:
    """Ends another session of this member. Signing out ends the current one."""
    others = sessions_of(member.user).exclude(session_id=request.session.session_key)
    if not end_member_sessions(others.filter(pk=session_id)):
        raise Http404
    messages.success(request, _("The session was ended."))
    return _back()


@require_POST
@member_page(protects=True)
def end_sessions(request: HttpRequest, member: Member) -> HttpResponse:
    """Ends all sessions of this member except the current one."""
    ended = end_member_sessions(
        sessions_of(member.user).exclude(session_id=request.session.session_key).order_by()
    )
    messages.success(request, _("Other sessions ended: %(ended)s.") % {"ended": ended})
    return _back()


def _show_backup_codes(
    request: HttpRequest, member: Member, codes: list[str], **context: Any
) -> HttpResponse:
    title = _("Backup codes")
    return show(request, member, "merchants/backup_codes.html", title=title, codes=codes, **context)


def _back() -> HttpResponse:
    return HttpResponseRedirect(reverse("merchants:profile"))
