"""The present actor and their address, for code that gets no request, such as the receivers in
people.py; and both in words."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass

from django.contrib.auth.models import User
from django.http import HttpRequest
from structlog.contextvars import bound_contextvars, get_contextvars

from core.texts import lazy


@dataclass(frozen=True)
class _Handled:
    request: HttpRequest
    address_of: Callable[[HttpRequest], str]


SERVICE = lazy("the service")
CHANNELS = {
    "admin": lazy("Back office"),
    "shell": lazy("Server"),
    "client": "API",
    "sql": lazy("Database"),
}

_handled: ContextVar[_Handled | None] = ContextVar("audit_handled", default=None)
_requester: ContextVar[User | None] = ContextVar("audit_requester", default=None)


@contextmanager
def handling(request: HttpRequest, *, address_of: Callable[[HttpRequest], str]) -> Iterator[None]:
    """Within the block, audit entries name the address of the request, which `address_of` reads.

    accounts/middleware.py enters it: only accounts knows which proxies to trust."""
    token = _handled.set(_Handled(request, address_of))
    try:
        yield
    finally:
        _handled.reset(token)


@contextmanager
def on_behalf_of(user: User) -> Iterator[None]:
    """Within the block, a worker acts for this person, and `current_actor` is that person."""
    token = _requester.set(user)
    try:
        yield
    finally:
        _requester.reset(token)


def current_actor() -> User | None:
    """The signed-in user of the current request, or the person a worker acts for; or None."""
    if requester := _requester.get():
        return requester
    handled = _handled.get()
    user = getattr(handled.request, "user", None) if handled else None
    return user if isinstance(user, User) else None


def current_address() -> str | None:
    """The network address that the current request came from; None outside a request."""
    handled = _handled.get()
    return (handled.address_of(handled.request) or None) if handled else None


@contextmanager
def acting_as(name: str) -> Iterator[None]:
    """Within the block, audit entries without a user name `name`, such as `company sign-in`."""
    with bound_contextvars(shell_actor=name):
        yield


def acting_name() -> str:
    """The actor's name without a signed-in user: `shell:anna`, or that of `acting_as`; or empty."""
    return str(get_contextvars().get("shell_actor", ""))


def in_words(actor: str) -> str:
    """An actor on one line: `anna` for a user, `root (Server)` for somebody else."""
    who, where = who_and_where(actor)
    name = without_channel(who)
    return name if name == who else f"{name} ({where})"


def without_channel(who: str) -> str:
    """The name alone: `root` for `shell:root`. The page shows beside it where they acted."""
    kind, _, name = who.partition(":")
    return name if name and kind in CHANNELS else who


def who_and_where(actor: str) -> tuple[str, str]:
    """An actor as records name it, such as `admin:anna`, for people: `anna`, `Back office`."""
    kind, _, name = actor.partition(":")
    if actor == "system":
        return str(SERVICE), ""
    if not name or kind not in CHANNELS:
        return actor, ""
    return (name if kind == "admin" else actor), str(CHANNELS[kind])
