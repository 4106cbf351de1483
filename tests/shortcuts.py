"""What tests do once or cheaply, because thousands of them pay for it.

A web process lists its static files once, when it starts. Every client of a test has its own
middleware, which would list them again: 30 ms of processor time for a request of 1 ms.

For each template that a page includes, Django's client would send a signal and keep a copy of the
context, hundreds for one page of the back office. Tests read `response.context` only of the page
itself.

Hashing a password takes a third of a second on purpose. Tests use the same hasher with fewer
rounds. Web servers that a test starts hash with all of them.

Axes clears the failed attempts of everybody who signs in. A test that only needs a session
(`open_session`, `force_login`) sends no request, and nobody has failed.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from axes.handlers.proxy import AxesProxyHandler
from django.contrib.auth.hashers import PBKDF2PasswordHasher
from django.http import HttpRequest
from django.template import Context, Template
from django.test.signals import template_rendered
from whitenoise.middleware import WhiteNoiseMiddleware

ROUNDS = 1000


@contextmanager
def shortcuts() -> Iterator[None]:
    """Replaces what costs much: the list of static files, contexts of pages, hashed passwords."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(WhiteNoiseMiddleware, "add_files_from_finders", _listing_once())
        patch.setattr(Template, "_render", _render)
        patch.setattr(PBKDF2PasswordHasher, "iterations", ROUNDS)
        patch.setattr(AxesProxyHandler, "user_logged_in", _clear_attempts_of_requests())
        yield


def _clear_attempts_of_requests() -> Any:
    clear = AxesProxyHandler.user_logged_in

    def clear_attempts(sender: Any, request: HttpRequest, user: Any, **kwargs: Any) -> None:
        if request.path:
            clear(sender, request, user, **kwargs)

    return staticmethod(clear_attempts)


def _render(template: Template, context: Context) -> Any:
    """Renders a template. Django's test client hears of it if it is a page."""
    if context.template is template:
        template_rendered.send(sender=template, template=template, context=context)
    return template.nodelist.render(context)


def _listing_once() -> Any:
    list_files, listed = WhiteNoiseMiddleware.add_files_from_finders, dict[str, Any]()

    def add_files(self: WhiteNoiseMiddleware) -> None:
        if not listed:
            list_files(self)
            listed.update(self.files)
        self.files = listed

    return add_files
