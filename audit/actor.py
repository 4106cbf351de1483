"""The user of the current request, for code that gets no request: the receivers in people.py."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from django.contrib.auth.models import User
from django.http import HttpRequest, HttpResponse
from structlog.contextvars import bound_contextvars, get_contextvars

_request: ContextVar[HttpRequest | None] = ContextVar("audit_request", default=None)


class ActorMiddleware:
    """Remembers the request while it is handled. It comes after the authentication middleware."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        token = _request.set(request)
        try:
            return self.get_response(request)
        finally:
            _request.reset(token)


def current_actor() -> User | None:
    """The signed-in user of the current request; None outside a request."""
    user = getattr(_request.get(), "user", None)
    return user if isinstance(user, User) else None


@contextmanager
def acting_as(name: str) -> Iterator[None]:
    """Within the block, audit entries without a user name `name`, such as `company sign-in`."""
    with bound_contextvars(shell_actor=name):
        yield


def acting_name() -> str:
    """Who acts instead of a signed-in user: `shell:anna`, or what `acting_as` says; or empty."""
    return str(get_contextvars().get("shell_actor", ""))
