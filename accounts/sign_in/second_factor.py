"""The second factor at sign-in: a code from an app, or a backup code.

Members may have one, and must if the owners of their account require it. Staff who can do more
than look must have one (`needs_factor`). Each site has
its own pages; this module holds what both share.
"""

from __future__ import annotations

import os
import textwrap
from base64 import b32encode
from collections.abc import Callable
from typing import Any, ClassVar
from urllib.parse import quote, urlencode

import segno
from django.conf import settings
from django.contrib.auth.models import User, update_last_login
from django.db import transaction
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django_otp import login
from django_otp_webauthn.models import WebAuthnCredential

from accounts.models import CODE_LENGTH, BackupCode, SecondFactor
from accounts.sign_in.next_page import ask_first
from audit.models import AuditAction
from audit.people import record_on_user
from core.texts import lazy

SHOWN_ELSEWHERE = "factor_shown_elsewhere"  # the key in the session
BACKUP_CODES = 10
BACKUP_CODE_BYTES = 10  # 16 characters
WRONG_CODE = lazy(
    "This code is wrong. Enter the current one. After several wrong codes, wait a moment."
)


class SecondFactorMiddleware:
    """Redirects users who must still show their second factor to the page that asks for it.

    Those who must have one and have none are redirected to the page that sets it up. Both pages
    lead back to the page that was asked for. Each site subclasses this and names its views.
    """

    prefix: ClassVar[str]  # of the site's paths
    page: ClassVar[str]  # the view that asks for the second factor
    enrol_page: ClassVar[str]  # the view that sets one up
    open_views: ClassVar[frozenset[str]]  # views that do not require it

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        return self.get_response(request)

    def process_view(self, request: HttpRequest, *view: object) -> HttpResponse | None:
        if not request.path_info.startswith(self.prefix):  # path_info has no mount prefix
            return None
        name = request.resolver_match and request.resolver_match.view_name
        if name in self.open_views:
            return None
        if must_show_factor(request):
            is_here = name == self.page
            return None if is_here else HttpResponseRedirect(ask_first(request, self.page))
        if name == self.enrol_page or not self._must_set_up_factor(request):
            return None
        return HttpResponseRedirect(ask_first(request, self.enrol_page))

    def must_have_factor(self, user: User) -> bool:
        """Whether this person opens no other page before they have a second factor."""
        raise NotImplementedError

    def _must_set_up_factor(self, request: HttpRequest) -> bool:
        user = request.user
        if not isinstance(user, User) or is_verified(request):
            return False
        return self.must_have_factor(user) and not has_factor(user)


def must_show_factor(request: HttpRequest) -> bool:
    """Whether the user has a second factor that this session has not shown."""
    user = request.user
    return user.is_authenticated and not is_verified(request) and has_factor(user)


def needs_factor(user: User) -> bool:
    """Whether this person must have a second factor: staff with a permission beyond looking.

    Every permission but `view_…` counts, so that a new permission to move money, to reveal codes or
    to manage access counts without being listed anywhere.
    """
    if not user.is_staff:
        return False
    return user.is_superuser or any(
        not permission.partition(".")[2].startswith("view_")
        for permission in user.get_all_permissions()
    )


def may_act(user: User) -> bool:
    """Whether this person may do more than look, and download what they see."""
    looks = ("view_", "export_lists")
    return user.is_superuser or any(
        not permission.partition(".")[2].startswith(looks)
        for permission in user.get_all_permissions()
    )


def has_factor(user: User) -> bool:
    """Whether the user has set up a second factor."""
    return SecondFactor.objects.filter(user=user, confirmed=True).exists()


def is_verified(request: HttpRequest) -> bool:
    """Whether this session has shown a second factor, here or at the company's provider."""
    if request.session.get(SHOWN_ELSEWHERE):
        return True
    return bool(request.user.is_verified())  # type: ignore[union-attr]  # added by OTPMiddleware


def note_factor_shown_elsewhere(request: HttpRequest, user: User) -> None:
    """Marks the new session of a person who has shown a second factor at the company's provider."""
    request.session[SHOWN_ELSEWHERE] = True
    update_last_login(User, user)


def note_sign_in(sender: object, user: User, **kwargs: Any) -> None:
    """Sets the time of the last sign-in, unless the second factor must follow, which then sets it.

    A receiver of `user_logged_in`, in place of Django's.
    """
    if not has_factor(user):
        update_last_login(User, user)


@transaction.atomic
def check_code(*, user: User, code: str) -> SecondFactor | None:
    """The user's second factor if the code is right; it is then used up. None otherwise.

    A wrong code is recorded in the audit trail. A code that comes too soon after a wrong one is
    refused without being looked at, and is not recorded.
    """
    factors = SecondFactor.objects.select_for_update().filter(user=user, confirmed=True)
    factor = factors.first()
    if factor is None or not factor.verify_is_allowed()[0]:
        return None
    if not factor.verify_token(code):
        record_on_user(user, AuditAction.SECOND_FACTOR_REFUSED, actor=user)
        return None
    if len(code) > CODE_LENGTH:
        left = factor.backup_codes.count()
        note = f"Codes left: {left}"
        record_on_user(user, AuditAction.BACKUP_CODE_USED, actor=user, note=note)
    return factor


def show_factor(request: HttpRequest, code: str) -> bool:
    """Marks the session as verified if the code is right. Returns whether it is."""
    user = request.user
    factor = check_code(user=user, code=code) if isinstance(user, User) else None
    if factor is not None:
        login(request, factor)
        update_last_login(User, factor.user)
    return factor is not None


@transaction.atomic
def forget_second_factors(*, user: User, actor: User | None) -> int:
    """Deletes the user's second factor, backup codes and passkeys. Returns how many factors."""
    removed = SecondFactor.objects.filter(user=user).delete()[1].get("accounts.SecondFactor", 0)
    WebAuthnCredential.objects.filter(user=user).delete()
    if removed:
        record_on_user(user, AuditAction.SECOND_FACTOR_RESET, actor=actor)
    return removed


def waiting_factor(user: User) -> SecondFactor:
    """The second factor that waits for its first code. A reloaded page gets the same one."""
    return SecondFactor.objects.get_or_create(user=user, defaults={"confirmed": False})[0]


@transaction.atomic
def confirm_factor(*, user: User, code: str) -> list[str] | None:
    """Turns the second factor on. Returns the backup codes, which cannot be shown again.

    None if the code is wrong, or if another request has turned it on already.
    """
    waiting = SecondFactor.objects.select_for_update().filter(user=user, confirmed=False)
    factor = waiting.first()
    if factor is None or not factor.verify_token(code):
        return None
    factor.confirmed = True
    factor.save()
    record_on_user(user, AuditAction.SECOND_FACTOR_SET_UP, actor=user)
    return replace_backup_codes(factor)


@transaction.atomic
def replace_backup_codes(factor: SecondFactor) -> list[str]:
    """Returns new backup codes, which cannot be shown again. The old ones stop working."""
    codes = [_new_backup_code() for _ in range(BACKUP_CODES)]
    factor.backup_codes.all().delete()
    BackupCode.objects.bulk_create(
        BackupCode(factor=factor, digest=BackupCode.digest_of(code)) for code in codes
    )
    return codes


def _new_backup_code() -> str:
    """A random code in groups of four characters, such as `abcd-2345-efgh-67ij`."""
    return "-".join(textwrap.wrap(b32encode(os.urandom(BACKUP_CODE_BYTES)).decode().lower(), 4))


def qr_code(factor: SecondFactor) -> str:
    """The QR code that an app scans, as a data URI."""
    issuer = settings.OTP_TOTP_ISSUER
    label = quote(f"{issuer}:{factor.user.get_username()}")
    facts = urlencode({"secret": b32encode(factor.key).decode(), "issuer": issuer}, quote_via=quote)
    image = segno.make(f"otpauth://totp/{label}?{facts}")
    uri: str = image.svg_data_uri(scale=5, border=2, light="#ffffff")
    return uri


def typed_key(factor: SecondFactor) -> str:
    """The key of the QR code for typing, in groups of four characters."""
    return " ".join(textwrap.wrap(b32encode(factor.key).decode(), 4))
