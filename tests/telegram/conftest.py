"""Fixtures: one Bot API server and one worker, and a chat for each test."""

from collections.abc import Iterator
from typing import Any

import pytest

from tests.telegram.announcing import Place, operators_chat
from tests.telegram.running import Desk, Telegram, open_desk, running_telegram


@pytest.fixture
def place(settings: Any) -> Iterator[Place]:
    """An operators' chat on a Bot API server of the test's own, and no bot."""
    with operators_chat(settings) as place:
        yield place


@pytest.fixture
def impatient(place: Place) -> Place:
    """The same chat; the service waits for answers for two seconds."""
    place.settings.TELEGRAM_TIMEOUT_SECONDS = 2
    return place


@pytest.fixture(scope="package")
def telegram(django_db_setup: None) -> Iterator[Telegram]:
    with running_telegram() as telegram:
        yield telegram


@pytest.fixture
def desk(
    telegram: Telegram, transactional_db: None, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Desk]:
    """An operators' chat, with the bot running."""
    if telegram.bot.exit_code() is not None or not telegram.bot.started:
        telegram.bot.start()
    with open_desk(telegram, settings, monkeypatch) as desk:
        yield desk
