"""The bot answers the commands of linked staff, in private and in the operators' chats."""

import pytest

from audit.models import AuditAction, AuditEntry
from operators.telegram.models import Announcement, TelegramLink
from operators.telegram.staff_links import issue_code, unlink_user
from tests.factories import make_operator
from tests.tasks.running import wait_until
from tests.telegram.running import Desk

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("alone")]


def test_queue_lists_the_oldest_order_first(desk: Desk) -> None:
    anna, _ = desk.staff("anna")
    boris, _ = desk.staff("boris")
    first, message = desk.order(name="Gems & <gold>")
    second, other_message = desk.order()
    desk.press(anna, message, "Claim")
    desk.press(boris, other_message, "Claim")

    queue = desk.ask(anna, desk.group, "/queue").text
    mine = desk.ask(anna, desk.group, "/mine@topups_test_bot").text

    assert queue.index(first.order_reference) < queue.index(second.order_reference)
    assert "Gems & <gold>" in queue
    assert "claimed by anna" in queue
    assert first.order_reference in mine
    assert second.order_reference not in mine


def test_long_queue_is_cut(desk: Desk) -> None:
    anna, _ = desk.staff("anna")
    for _ in range(17):
        desk.order(name="😀" * 200)

    answer = desk.ask(anna, desk.group, "/queue")

    assert answer.text.endswith("… and 2 more.")


def test_empty_lists_are_answered(desk: Desk) -> None:
    anna, _ = desk.staff("anna")
    assert desk.ask(anna, desk.group, "/queue").text == "There are no open orders."
    assert desk.ask(anna, desk.group, "/mine").text == "You have no claimed orders."


def test_order_is_shown_by_its_reference(desk: Desk) -> None:
    anna, _ = desk.staff("anna")
    desk.order()
    fulfilment, message = desk.order()
    private = desk.api.private(anna)
    reference = fulfilment.order_reference
    stored = Announcement.objects.filter(fulfilment=fulfilment, message_id=message.id)
    wait_until(stored.exists, "the message of the announcement is stored")

    answer = desk.ask(anna, private, f"/order {reference.lower()}")

    assert reference in answer.text
    assert "0012345" in answer.text
    assert answer.buttons == []
    (address,) = [one["url"] for one in answer.entities if one["type"] == "text_link"]
    assert address.endswith(f"/{message.id}")
    for words in ("<b>nobody's</b>", "x" * 3000, "'; --", "é"):
        assert "There is no" in desk.ask(anna, private, f"/order {words}").text
    assert "Add the order's reference" in desk.ask(anna, private, "/order").text


def test_help_names_every_command(desk: Desk) -> None:
    anna, _ = desk.staff("anna")
    answer = desk.ask(anna, desk.group, "/help").text
    commands = [one["command"] for one in desk.api.commands]
    assert commands == ["queue", "mine", "order", "chat", "help"]
    assert all(f"/{command}" in answer for command in commands)


def test_strangers_are_refused(desk: Desk) -> None:
    eve = desk.api.add_user("Eve")
    desk.order()

    for chat in (desk.group, desk.api.private(eve)):
        assert desk.ask(eve, chat, "/queue").text.startswith("You cannot use this bot")
        for text in ("/mine", "/order X", "/help", "/queue"):
            desk.api.type(eve, chat, text)
    desk.api.settle()

    assert AuditEntry.objects.filter(action=AuditAction.TELEGRAM_REFUSED).count() == 4


def test_a_group_hears_one_answer_a_minute_to_strangers(desk: Desk) -> None:
    """Otherwise they would use up what Telegram lets the bot send to the group."""
    anna, _ = desk.staff("anna")
    eve, mallory = desk.api.add_user("Eve"), desk.api.add_user("Mallory")
    fulfilment, message = desk.order()
    desk.ask(eve, desk.group, "/queue")
    before = len(desk.api.bot_messages(desk.group))

    for stranger in (eve, mallory):
        for text in ("/queue", "/help", "/start", "/link 123"):
            desk.api.type(stranger, desk.group, text)
        desk.api.type(stranger, desk.group, "hello", reply_to=message)
    desk.api.settle()

    assert len(desk.api.bot_messages(desk.group)) == before
    assert "cannot use this bot" in desk.ask(eve, desk.api.private(eve), "/queue").text
    assert fulfilment.order_reference in desk.ask(anna, desk.group, "/queue").text


def test_bot_ignores_other_groups(desk: Desk) -> None:
    anna, _ = desk.staff("anna")
    other = desk.api.add_group("Friends")

    for text in ("/queue", "/start", "/link 123", "/help"):
        desk.api.type(anna, other, text)
    desk.api.type(anna, desk.group, "hello there")
    desk.api.settle()

    assert desk.api.bot_messages(other) == []
    assert [one for one in desk.api.bot_messages(desk.group) if one.reply_to is None] == []


def test_linked_staff_alone_learn_the_id_of_a_group(desk: Desk) -> None:
    anna, _ = desk.staff("anna")
    eve = desk.api.add_user("Eve")
    new = desk.api.add_group("New operators")

    desk.api.type(eve, new, "/chat")
    answer = desk.ask(anna, new, "/chat")
    desk.api.settle()

    assert str(new.id) in answer.text
    assert [one.text for one in desk.api.bot_messages(new)] == [answer.text]


def test_linked_staff_who_add_the_bot_learn_the_id_of_the_group_in_private(desk: Desk) -> None:
    anna, _ = desk.staff("anna")
    eve = desk.api.add_user("Eve")
    desk.ask(anna, desk.api.private(anna), "/help")
    desk.ask(eve, desk.api.private(eve), "/help")
    new, removed_before, others = (desk.api.add_group(name) for name in ("<New>", "Old", "Other"))

    desk.api.add_bot(eve, others)
    desk.api.add_bot(anna, others, before="administrator")  # it was there before
    desk.api.add_bot(anna, new)
    desk.api.add_bot(anna, removed_before, before="kicked")
    wait_until(
        lambda: len(desk.api.bot_messages(desk.api.private(anna))) >= 3, "both groups are told"
    )
    desk.api.settle()

    _, *told = (one.text for one in desk.api.bot_messages(desk.api.private(anna)))
    assert "<New>" in told[0]
    assert [str(group.id) in text for group, text in zip((new, removed_before), told, strict=True)]
    assert len(desk.api.bot_messages(desk.api.private(eve))) == 1
    assert [desk.api.bot_messages(group) for group in (new, removed_before, others)] == [[]] * 3


def test_staff_who_never_wrote_to_the_bot_may_ask_for_the_id_in_the_group(desk: Desk) -> None:
    anna, _ = desk.staff("anna")
    desk.api.private(anna)
    new = desk.api.add_group("New", forum=True)
    topic = desk.api.add_topic(new)

    desk.api.add_bot(anna, new)
    desk.api.settle()
    desk.api.type(anna, new, "/chat", thread=topic)
    wait_until(lambda: desk.api.bot_messages(new), "the bot answers")

    (answer,) = desk.api.bot_messages(new)
    assert str(new.id) in answer.text
    assert f"id of this topic is {topic}." in answer.text
    assert desk.api.bot_messages(desk.api.private(anna)) == []


@pytest.mark.parametrize("command", ["/start", "/link"])
def test_code_links_once(desk: Desk, command: str) -> None:
    user = make_operator(username="anna").user
    code = issue_code(user=user)
    anna, eve = desk.api.add_user("Anna"), desk.api.add_user("Eve")

    assert "Hello" in desk.ask(anna, desk.api.private(anna), "/start").text
    assert "private chat" in desk.ask(anna, desk.group, f"{command} {code}").text
    code = issue_code(user=user)  # the group has seen the first one
    answer = desk.ask(anna, desk.api.private(anna), f"{command} {code}")
    again = desk.ask(anna, desk.api.private(anna), f"{command} {code}")
    stolen = desk.ask(eve, desk.api.private(eve), f"{command} {code}")

    assert "linked as anna" in answer.text
    assert "linked as anna" in again.text
    assert "wrong, used or expired" in stolen.text
    assert TelegramLink.objects.get().telegram_user_id == anna.id
    assert code not in desk.bot.log
    _, message = desk.order()
    assert desk.press(anna, message, "Claim").text == "Claimed. The order is assigned to you."
    unlink_user(user=user, actor=user)
    assert desk.press(anna, message, "Delivered").text.startswith("You cannot use this bot")
