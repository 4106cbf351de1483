"""The page where staff link their own Telegram account."""

from __future__ import annotations

from django.contrib import messages
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import reverse
from django.utils.translation import gettext as _

from core.inputs import InputProblem
from operators.frame.base import StaffConfirmingForm, site_page, staff_of
from operators.telegram.models import TelegramLink
from operators.telegram.staff_links import CODE_LIFETIME, issue_code, unlink_user


def link(request: HttpRequest) -> HttpResponse:
    """Shows the linked account. A POST issues a code, or removes the link."""
    user = staff_of(request)
    linked = TelegramLink.objects.filter(user=user).first()
    form = StaffConfirmingForm(request)
    if request.method != "POST" or (linked is None and not form.is_valid()):
        return _ask(request, linked, form)
    if linked is not None:
        unlink_user(user=user, actor=user)
        messages.success(request, _("Your Telegram account is no longer linked."))
        return HttpResponseRedirect(reverse("telegram_link"))
    try:
        code = issue_code(user=user)
    except InputProblem as problem:
        messages.error(request, str(problem))
        return HttpResponseRedirect(reverse("admin:index"))
    minutes = CODE_LIFETIME.total_seconds() // 60
    return site_page(
        request,
        "admin/secret.html",
        title=_("Link Telegram"),
        warning=_(
            "Send this message to the bot in a private chat within %(minutes)s"
            " minutes. It works once. Do not show it to other people: the sender"
            " can act as you."
        )
        % {"minutes": f"{minutes:.0f}"},
        groups=[{"title": "", "parts": {_("Message"): f"/start {code}"}}],
        back=reverse("telegram_link"),
    )


def _ask(
    request: HttpRequest, linked: TelegramLink | None, form: StaffConfirmingForm
) -> HttpResponse:
    if linked is None:
        facts, button = [_("Your account is not linked to a Telegram account.")], _("Get a code")
    else:
        facts, button = (
            [_("Linked to Telegram user %(user)s.") % {"user": linked.telegram_user_id}],
            _("Unlink"),
        )
    return site_page(
        request,
        "admin/confirm.html",
        title=_("Link Telegram"),
        question=_("Link your Telegram account to work on top-up orders in the operators' chat."),
        facts=facts,
        form=form if form.fields and linked is None else None,
        button=button,
        danger=linked is not None,
        back=reverse("admin:index"),
    )
