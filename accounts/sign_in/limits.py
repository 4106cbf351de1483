"""Limits on guessing passwords: per name and address, per address, and per name.

Checking one password takes a third of a second of processor time, on purpose. The limits are
therefore tested before it, and one process checks one password at a time. Names take turns: whoever
has one name at one address, and tries right or wrong passwords without a pause, keeps nobody else
from signing in.

django-axes keeps the counts of wrong passwords in the database. All attempts of a minute, with
right passwords too, are counted in the cache. All pages that ask for a password go through
`authenticate`, and so through these limits.
"""

from datetime import timedelta
from typing import Any, NoReturn

from axes.attempts import get_cool_off_threshold
from axes.handlers.database import AxesDatabaseHandler
from axes.handlers.proxy import AxesProxyHandler
from axes.helpers import get_client_username
from axes.models import AccessAttempt, AccessLog
from django.conf import settings
from django.contrib.auth.backends import ModelBackend
from django.contrib.auth.models import User
from django.core.exceptions import PermissionDenied
from django.db.models import Q, Sum
from django.http import HttpRequest
from django.utils import timezone

from accounts.addresses import counted_address
from accounts.rates import seconds_to_wait
from core.http.turns import NoPlace, Turns

MAX_NAME_LENGTH = 255  # of axes' tables
KNOWN_ADDRESS_DAYS = 90


class SignInLimits(AxesDatabaseHandler):  # type: ignore[misc]  # untyped
    """Counts wrong passwords. Axes refuses a guess when the count reaches `AXES_FAILURE_LIMIT`.

    The limit of a name does not apply at an address from which this person has signed in before:
    otherwise a stranger who guesses from many addresses could keep them out for ever. There, only
    the limits of the address, and of the name at that address, apply.
    """

    def get_failures(self, request: Any, credentials: dict[str, Any] | None = None) -> int:
        """The wrong passwords for this name from this address; the limit if another is reached."""
        name, address = get_client_username(request, credentials), request.axes_ip_address
        by_name, by_address = Q(username=name), Q(ip_address=address)
        recent = AccessAttempt.objects.filter(attempt_time__gte=get_cool_off_threshold(request))
        counts = recent.filter(by_name | by_address).aggregate(
            both=Sum("failures_since_start", filter=by_name & by_address, default=0),
            address=Sum("failures_since_start", filter=by_address, default=0),
            name=Sum("failures_since_start", filter=by_name, default=0),
        )
        limited = counts["address"] >= settings.LOGIN_FAILURE_LIMIT_PER_ADDRESS or (
            counts["name"] >= settings.LOGIN_FAILURE_LIMIT_PER_NAME
            and not has_signed_in(name=name, address=address)
        )
        failures: int = counts["both"]
        return max(failures, settings.AXES_FAILURE_LIMIT) if limited else failures


def has_signed_in(*, name: str | None, address: str) -> bool:
    """Whether this name has signed in from this address within the last 90 days."""
    since = timezone.now() - timedelta(days=KNOWN_ADDRESS_DAYS)
    known = AccessLog.objects.filter(username=name, ip_address=address, attempt_time__gte=since)
    return bool(known.exists())


def forget_old_addresses() -> int:
    """Deletes records of sign-ins older than RETENTION_SIGN_IN_DAYS, which is at least as long as
    `has_signed_in` looks back. Returns how many."""
    deleted: int = AxesProxyHandler.reset_logs(age_days=settings.RETENTION_DAYS["sign_ins"])
    return deleted


def attempted_name(request: HttpRequest, credentials: dict[str, Any] | None) -> str | None:
    """AXES_USERNAME_CALLABLE: the name, cut to what the table can hold. Nothing signs in with a
    longer one, but guesses at it are counted."""
    name = (credentials or {}).get("username")
    return None if name is None else str(name)[:MAX_NAME_LENGTH]


def _count_attempt(request: HttpRequest, name: str) -> int:
    """The seconds to wait; 0 while neither the name nor the address has tried too often.

    What is refused for its name is not counted for its address, where others may sign in.
    """
    return seconds_to_wait(
        group="sign_in_name",
        key=name,
        limit=settings.LOGIN_ATTEMPTS_PER_NAME,
    ) or seconds_to_wait(
        group="sign_in_address",
        key=counted_address(request),
        limit=settings.LOGIN_ATTEMPTS_PER_ADDRESS,
    )


class PasswordBackend(ModelBackend):
    """Checks passwords, one at a time in each process.

    At most three attempts for one name, four from one address and five in all are in line. So a
    sign-in waits for one attempt of each other name, four at most, and threads remain for other
    requests. Without a place in line it is refused with a 503 page. What is refused is not counted
    as a guess.
    """

    line = Turns(of_owner=3, of_group=4, places=5)

    def authenticate(
        self,
        request: HttpRequest | None,
        username: str | None = None,
        password: str | None = None,
        **kwargs: Any,
    ) -> User | None:
        assert request is not None  # noqa: S101  axes, which is asked first, needs one, too
        name = str(username)
        if wait := _count_attempt(request, name):
            _refuse(request, wait)
        try:
            with self.line.turn(name, group=counted_address(request)):
                user = super().authenticate(request, username, password, **kwargs)
        except NoPlace:
            _refuse(request, 0)
        return user if isinstance(user, User) else None

    def user_can_authenticate(self, user: Any) -> bool:
        """Refuses staff where only company sign-in is allowed, but for break-glass accounts.

        Django also asks this for each request of a session that began with a password.
        """
        company = settings.COMPANY_SIGN_IN
        if company and user.is_staff and not company.allows_password(user.username):
            return False
        return super().user_can_authenticate(user)


def _refuse(request: HttpRequest, wait: int) -> NoReturn:
    """Axes does not count what is refused as locked out, and shows its page instead."""
    request.axes_locked_out = True  # type: ignore[attr-defined]
    request.sign_in_wait = wait  # type: ignore[attr-defined]
    raise PermissionDenied
