"""The fake Bot API server behaves as python-telegram-bot expects."""

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from typing import Any

import pytest
from telegram import (
    Bot,
    BotCommand,
    InlineKeyboardButton,
    InlineKeyboardMarkup,
    ReplyParameters,
    Update,
)
from telegram.error import BadRequest, Conflict, Forbidden, InvalidToken, NetworkError, RetryAfter
from telegram.request import HTTPXRequest

from tests.telegram.fake_bot_api.faults import DROP, ERROR, TOO_MANY
from tests.telegram.fake_bot_api.objects import Press
from tests.telegram.fake_bot_api.server import BotApi, running_bot_api

ROWS = InlineKeyboardMarkup([[InlineKeyboardButton("Claim", callback_data="claim")]])


@pytest.fixture
def api() -> Iterator[BotApi]:
    with running_bot_api() as api:
        yield api


def make_bot(api: BotApi, token: str) -> Bot:
    """A bot that reads no certificates, which takes longer than many calls: it uses plain HTTP."""
    requests = (HTTPXRequest(httpx_kwargs={"verify": False}) for _ in range(2))
    return Bot(
        token,
        base_url=f"{api.url}/bot",
        request=next(requests),
        get_updates_request=next(requests),
    )


def talk(api: BotApi, say: Callable[[Bot], Awaitable[Any]], *, token: str = "") -> Any:
    async def carry_out() -> Any:
        async with make_bot(api, token or api.token) as bot:
            return await say(bot)

    return asyncio.run(carry_out())


def test_message_is_sent_and_edited(api: BotApi) -> None:
    group = api.add_group("Operators", forum=True)
    topic = api.add_topic(group)

    async def say(bot: Bot) -> Any:
        sent = await bot.send_message(
            group.id,
            "<b>Gems</b> for <code>0012 &lt;3</code> 😀<i>!</i>",
            parse_mode="HTML",
            reply_markup=ROWS,
            message_thread_id=topic,
        )
        answer = await bot.send_message(
            group.id, "again", reply_parameters=ReplyParameters(sent.message_id)
        )
        edited = await bot.edit_message_text("done", chat_id=group.id, message_id=sent.message_id)
        return sent, answer, edited

    sent, answer, edited = talk(api, say)
    assert sent.text == "Gems for 0012 <3 😀!"
    assert [sent.parse_entity(one) for one in sent.entities] == ["Gems", "0012 <3", "!"]
    assert sent.message_thread_id == topic
    assert sent.date.year > 2000
    assert answer.reply_to_message.message_id == sent.message_id
    assert edited.text == "done"
    assert edited.reply_markup is None
    assert edited.edit_date is not None
    message = api.bot_messages(group)[0]
    assert message.edits[0][0] == sent.text
    assert message.buttons == []


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("<b>", "can't parse entities"),
        ("<b></i>", "can't parse entities"),
        ("1 < 2", "can't parse entities"),
        ("<p>x</p>", "can't parse entities"),
        ("", "text is empty"),
        ("<b></b>", "text is empty"),
        ("x" * 4097, "too long"),
        ("😀" * 2049, "too long"),
    ],
)
def test_bad_text_is_refused(api: BotApi, text: str, words: str) -> None:
    group = api.add_group("Operators")
    with pytest.raises(BadRequest, match=f"(?i){words}"):
        talk(api, lambda bot: bot.send_message(group.id, text, parse_mode="HTML"))
    assert api.bot_messages(group) == []


def test_forbidden_calls_are_refused(api: BotApi) -> None:
    group, anna = api.add_group("Operators"), api.add_user("Anna")
    sent = talk(api, lambda bot: bot.send_message(group.id, "one", reply_markup=ROWS))
    typed = api.type(anna, group, "hello")
    long = InlineKeyboardMarkup([[InlineKeyboardButton("x", callback_data="x" * 64)]])
    object.__setattr__(long.inline_keyboard[0][0], "callback_data", "x" * 65)

    def edit(message_id: int, text: str = "one") -> Any:
        return talk(
            api,
            lambda bot: bot.edit_message_text(
                text, chat_id=group.id, message_id=message_id, reply_markup=ROWS
            ),
        )

    with pytest.raises(BadRequest, match=r"(?i)not modified"):
        edit(sent.message_id)
    with pytest.raises(BadRequest, match=r"(?i)message to edit not found"):
        edit(4242)
    with pytest.raises(BadRequest, match=r"(?i)can't be edited"):
        edit(typed.id)
    with pytest.raises(BadRequest, match=r"(?i)button_data_invalid"):
        talk(api, lambda bot: bot.send_message(group.id, "x", reply_markup=long))
    with pytest.raises(BadRequest, match=r"(?i)chat not found"):
        talk(api, lambda bot: bot.send_message(-1, "x"))
    with pytest.raises(BadRequest, match=r"(?i)thread not found"):
        talk(api, lambda bot: bot.send_message(group.id, "x", message_thread_id=99))
    with pytest.raises(Forbidden, match=r"(?i)initiate"):
        talk(api, lambda bot: bot.send_message(api.private(anna).id, "x"))
    group.kicked = True
    with pytest.raises(Forbidden, match=r"(?i)kicked"):
        talk(api, lambda bot: bot.send_message(group.id, "x"))
    with pytest.raises(InvalidToken):
        talk(api, lambda bot: bot.get_me(), token="1:wrong-token-of-nobody")


def test_updates_are_repeated_until_confirmed(api: BotApi) -> None:
    group, anna = api.add_group("Operators"), api.add_user("Anna", "anna")
    sent = talk(api, lambda bot: bot.send_message(group.id, "one", reply_markup=ROWS))
    press = api.press(anna, api.bot_messages(group)[0], "Claim")
    api.type(anna, group, "/queue@topups_test_bot")

    def fetch(offset: int | None = None) -> list[Update]:
        found: list[Update] = list(talk(api, lambda bot: bot.get_updates(offset, timeout=0)))
        return found

    first, second = fetch()
    assert [one.update_id for one in fetch()] == [first.update_id, second.update_id]
    assert first.callback_query is not None
    assert first.callback_query.id == press.id
    assert first.callback_query.data == "claim"
    assert first.callback_query.from_user.id == anna.id
    assert first.callback_query.message is not None
    assert first.callback_query.message.message_id == sent.message_id
    assert second.message is not None
    assert second.message.parse_entities() == {second.message.entities[0]: "/queue@topups_test_bot"}
    assert [one.update_id for one in fetch(second.update_id)] == [second.update_id]
    assert fetch(second.update_id + 1) == []
    assert api.replay(2) == [first.update_id, second.update_id]
    assert len(fetch()) == 2


def test_press_can_be_answered_once_and_in_time(api: BotApi) -> None:
    group, anna = api.add_group("Operators"), api.add_user("Anna")
    talk(api, lambda bot: bot.send_message(group.id, "one", reply_markup=ROWS))

    def answer(press: Press, **words: Any) -> bool:
        return bool(talk(api, lambda bot: bot.answer_callback_query(press.id, **words)))

    message = api.bot_messages(group)[0]
    press, late = api.press(anna, message, "Claim"), api.press(anna, message, "Claim")
    assert answer(press, text="yours", show_alert=True)
    assert (press.wait().text, press.wait().alert) == ("yours", True)
    api.query_seconds = 0
    for one in (press, late):
        with pytest.raises(BadRequest, match=r"(?i)too old"):
            answer(one)


def test_new_poll_ends_the_older_one(api: BotApi) -> None:
    async def say(bot: Bot) -> None:
        async with make_bot(api, api.token) as other:
            older = asyncio.create_task(other.get_updates(timeout=30))
            while not api.polls:
                await asyncio.sleep(0.01)
            await bot.get_updates(timeout=0)
            await older

    with pytest.raises(Conflict):
        talk(api, say)


def test_faults_apply_to_the_next_calls(api: BotApi) -> None:
    group = api.add_group("Operators")

    def send() -> Any:
        return talk(api, lambda bot: bot.send_message(group.id, "x"))

    api.fault("sendMessage", TOO_MANY(7))
    with pytest.raises(RetryAfter) as asked:
        send()
    assert getattr(asked.value.retry_after, "seconds", asked.value.retry_after) == 7
    api.fault("sendMessage", ERROR(500))
    with pytest.raises(NetworkError):
        send()
    api.fault("sendMessage", DROP())
    with pytest.raises(NetworkError):
        send()
    assert api.bot_messages(group) == []
    api.fault("sendMessage", DROP(after=True))
    with pytest.raises(NetworkError):
        send()
    assert len(api.bot_messages(group)) == 1
    assert [call.status for call in api.calls if call.method == "sendMessage"] == [429, 500, 0, 0]


def test_chats_commands_and_deletion(api: BotApi) -> None:
    anna = api.add_user("Anna")
    private = api.private(anna)
    api.type(anna, private, "/start")

    async def say(bot: Bot) -> Any:
        await bot.set_my_commands([BotCommand("queue", "Open orders")])
        chat = await bot.get_chat(private.id)
        sent = await bot.send_message(private.id, "x")
        await bot.delete_message(private.id, sent.message_id)
        return chat

    assert talk(api, say).first_name == "Anna"
    assert api.commands == [{"command": "queue", "description": "Open orders"}]
    assert api.bot_messages(private) == []
