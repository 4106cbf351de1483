"""Steps before the service sells with real money, on the first page of administrators."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from django.conf import settings
from django.contrib.auth.models import Group, User
from django.db.models import Model
from django.urls import reverse

from accounts.models import Account, OwnCompany
from core.backoffice.staff import staff_who_may
from core.backoffice.staff_roles import StaffRole
from core.texts import lazy
from merchants.models import Email
from operators.frame.base import list_url
from operators.staff.people import MANAGE
from operators.telegram.models import PlatformSettings
from operators.upkeep.models import Copy, CopyKind
from wallets.models import BankDetails

FILES = "django.core.mail.backends.filebased.EmailBackend"


def _has_two_administrators() -> bool:
    """Whether two people who may manage staff have signed in."""
    return staff_who_may(MANAGE).filter(last_login__isnull=False)[:2].count() == 2


def _as_administrator() -> dict[str, Any]:
    """The form of a new person begins with this role, unless somebody has deleted it."""
    roles = Group.objects.filter(name=StaffRole.ADMINISTRATOR)
    return {"groups": list(roles.values_list("pk", flat=True))}


@dataclass(frozen=True)
class Step:
    """A step, the reason for it, and the page or the list where it is done. A step that has both
    leads to the list once it is done. Optional steps may wait."""

    title: str
    why: str
    is_done: Callable[[], bool]
    model: type[Model] | None = None
    page: str = ""
    query: Callable[[], dict[str, Any]] = dict
    optional: bool = False


STEPS = [
    Step(
        lazy("Enter your company"),
        lazy("Statements name it as their issuer."),
        lambda: OwnCompany.objects.exclude(legal_name="").exists(),
        page="admin:accounts_owncompany_changelist",
    ),
    Step(
        lazy("Invite a second administrator"),
        lazy("Some changes need two people. Done when the second one has signed in."),
        _has_two_administrators,
        model=User,
        page="admin:auth_user_add",
        query=_as_administrator,
    ),
    Step(
        lazy("Enter your bank details"),
        lazy("Merchants read them before they pay."),
        BankDetails.objects.exists,
        model=BankDetails,
    ),
    Step(
        lazy("Connect an email server"),
        lazy(
            "Set EMAIL_URL in the environment of the service, such as"
            " smtp+tls://user:password@mail.example:587, and start it again. Until then,"
            " invitations and warnings stay in files on the server."
        ),
        lambda: settings.EMAIL_BACKEND != FILES,
        model=Email,
    ),
    Step(
        lazy("Set up the backup"),
        lazy("Without one, a lost disk loses everything. It reports here and on the System page."),
        Copy.objects.filter(kind=CopyKind.BACKUP).exists,
        page="system",
    ),
    Step(
        lazy("Add the first merchant"),
        lazy("An account with a wallet, and an invitation for its owner."),
        Account.objects.exists,
        model=Account,
    ),
    Step(
        lazy("Announce top-ups in Telegram"),
        lazy("Operators then claim and deliver orders in their chat."),
        lambda: PlatformSettings.objects.exclude(chat_id=None).exists(),
        model=PlatformSettings,
        optional=True,
    ),
]


def show_checklist(user: User) -> dict[str, Any] | None:
    """The steps for an administrator; None for other people, and once nothing needed is left."""
    if not user.has_perm(MANAGE):
        return None
    steps = [
        {
            "title": step.title,
            "why": step.why,
            "done": (done := step.is_done()),
            "optional": step.optional,
            "url": _url_of(step, done=done),
        }
        for step in STEPS
    ]
    needed = [step for step in steps if not step["optional"]]
    number = sum(bool(step["done"]) for step in needed)
    return None if number == len(needed) else {"steps": steps, "done": number, "all": len(needed)}


def _url_of(step: Step, *, done: bool) -> str:
    if step.model and (done or not step.page):
        return list_url(step.model)
    return reverse(step.page, query=step.query())
