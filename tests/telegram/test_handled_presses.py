"""A press that Telegram delivers twice is answered once; without a cache each counts as new."""

from typing import Any
from uuid import uuid4

import pytest

from core import cache
from embedded.processes import free_port
from operators.telegram.updates.bot_cache import note_handled, was_handled


def test_press_is_handled_once() -> None:
    one, other = uuid4().hex, uuid4().hex

    assert not was_handled(one)
    assert [note_handled(one), note_handled(one)] == [True, False]
    assert [was_handled(one), was_handled(other)] == [True, False]


def test_press_counts_as_new_without_a_cache(
    settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cache, "outage", cache.Outage())  # the real cache is not lost
    gone = {
        "BACKEND": "core.cache.ImpatientRedisCache",
        "LOCATION": f"redis://127.0.0.1:{free_port()}",
    }
    settings.CACHES = {**settings.CACHES, "default": gone}
    query_id = uuid4().hex

    assert [note_handled(query_id), note_handled(query_id)] == [True, True]
    assert not was_handled(query_id)
