"""What tests do once or cheaply, because thousands of them pay for it.

A web process lists its static files once, when it starts. Every client of a test has its own
middleware, which would list them again: 30 ms of processor time for a request of 1 ms.

Hashing a password takes a third of a second on purpose. Tests use the same hasher with fewer
rounds. Web servers that a test starts hash with all of them.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from django.contrib.auth.hashers import PBKDF2PasswordHasher
from whitenoise.middleware import WhiteNoiseMiddleware

ROUNDS = 1000


@contextmanager
def shortcuts() -> Iterator[None]:
    """Lists static files once in this process, and hashes passwords with few rounds."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(WhiteNoiseMiddleware, "add_files_from_finders", _listing_once())
        patch.setattr(PBKDF2PasswordHasher, "iterations", ROUNDS)
        yield


def _listing_once() -> Any:
    list_files, listed = WhiteNoiseMiddleware.add_files_from_finders, dict[str, Any]()

    def add_files(self: WhiteNoiseMiddleware) -> None:
        if not listed:
            list_files(self)
            listed.update(self.files)
        self.files = listed

    return add_files
