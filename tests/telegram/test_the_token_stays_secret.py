"""The bot's token is in no error and in no log."""

import json
import os
import traceback

import pytest

from embedded.processes import free_port
from operators.telegram import bot_api
from operators.telegram.chats import Target
from operators.telegram.messages.message import Message
from tests.live import database_url
from tests.quick_starts import run_quickly
from tests.telegram.announcing import (
    ANSWER_LOST,
    Place,
    later,
)
from tests.telegram.fake_bot_api.faults import ERROR, TOO_MANY, Fault

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("impatient")]


@pytest.mark.parametrize(
    "fault",
    [*ANSWER_LOST.values(), TOO_MANY(3), ERROR(400, "Bad Request: nonsense"), ERROR(403), None],
    ids=str,
)
def test_no_error_holds_the_token(place: Place, fault: Fault | None) -> None:
    if fault is None:
        place.settings.TELEGRAM_API_URL = f"http://127.0.0.1:{free_port()}"
    else:
        place.api.fault("sendMessage", fault)

    with pytest.raises(bot_api.Trouble) as error:
        bot_api.send(target=Target(place.group.id), message=Message("text", [], 1))

    whole = "".join(traceback.format_exception(error.value))
    assert place.api.token not in whole
    assert f"bot{place.api.token.partition(':')[0]}" not in whole
    assert error.value.__context__ is None


@pytest.mark.django_db(transaction=True)
def test_no_log_holds_the_token_even_at_debug_level(place: Place) -> None:
    place.api.fault("sendMessage", ERROR(500), times=1)
    place.order()
    environment = {
        **os.environ,
        "DATABASE_URL": database_url(),
        "LOG_LEVEL": "DEBUG",
        "TELEGRAM_BOT_TOKEN": place.api.token,
        "TELEGRAM_API_URL": place.api.url,
    }

    def run(*arguments: str) -> tuple[str, str]:
        ended = run_quickly(["manage.py", *arguments], environment=environment, check=True)
        return ended.stdout, ended.stderr

    failed = run("sweep_announcements")
    later(minutes=10)
    done = run("sweep_announcements")
    careless = run(
        "shell",
        "--command=import logging; from django.conf import settings;"
        " logging.warning(settings.TELEGRAM_BOT_TOKEN)",
    )

    assert json.loads(failed[0])["announced"] == 0
    assert json.loads(done[0])["announced"] == 1
    assert "***" in careless[1]
    assert place.api.token not in "".join((*failed, *done, *careless))
