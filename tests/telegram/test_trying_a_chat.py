"""A test message shows that Telegram takes messages for the chats of the settings and routes."""

from typing import Any

import pytest
from django.urls import reverse

from operators.telegram.chats import paused_chats
from operators.telegram.models import AnnouncementChat, AnnouncementRoute, PlatformSettings
from operators.telegram.tasks import send_test_messages
from tests.factories import make_category, make_operator, make_topup_product
from tests.operators.back_office import form_of, signed_in
from tests.telegram.announcing import Place
from tests.telegram.running import Desk

PAGE = reverse("admin:telegram_platformsettings_change", args=[1])
BUTTON = "telegram_platformsettings_send_test_message"


def press(**fields: Any) -> str:
    """Saves the settings with the button, and returns the page that follows."""
    browser = signed_in()
    form = {**form_of(browser, PAGE), **fields, BUTTON: "on"}
    return str(browser.post(PAGE, form, follow=True).content.decode())


@pytest.mark.django_db(transaction=True)
@pytest.mark.usefixtures("alone")
def test_the_button_saves_and_posts_in_the_chat_that_was_just_entered(desk: Desk) -> None:
    new = desk.api.add_group("New")

    page = press(chat_id=str(new.id))
    desk.api.wait_for(lambda: desk.api.bot_messages(new), "the test message")

    assert "A test message goes to the chat" in page
    assert "Test message, sent by" in desk.api.bot_messages(new)[0].text
    assert desk.api.bot_messages(desk.group) == []


@pytest.mark.django_db
def test_nothing_is_sent_without_a_bot_or_a_chat(settings: Any) -> None:
    settings.TELEGRAM_BOT_TOKEN = ""
    assert "runs without a bot" in press(chat_id="-1")
    settings.TELEGRAM_BOT_TOKEN = "1:token"
    assert "there is no chat" in press(chat_id="")
    assert PlatformSettings.objects.get().chat_id is None


@pytest.mark.django_db
def test_each_chat_and_topic_gets_one_message(place: Place) -> None:
    forum = place.api.add_group("Forum", forum=True)
    topic = place.api.add_topic(forum)
    AnnouncementRoute.objects.create(product=make_topup_product(), chat_id=forum.id, topic_id=topic)
    AnnouncementRoute.objects.create(category=make_category(), chat_id=place.group.id)
    operator = make_operator(username="anna <b>")

    assert send_test_messages(operator.user.pk) == 2

    assert [one.text for one in place.posted()] == [
        "Test message, sent by anna <b> from the back office. Orders will be announced here."
    ]
    assert [one.thread for one in place.posted(forum)] == [topic]


@pytest.mark.django_db
def test_a_failure_is_shown_on_the_page_of_the_settings(place: Place) -> None:
    user = make_operator().user
    place.set(chat_id=-1_001_999)
    AnnouncementRoute.objects.create(category=make_category(), chat_id=place.group.id)

    assert send_test_messages(user.pk) == 1
    assert "Chat not found" in AnnouncementChat.objects.get(chat_id=-1_001_999).last_error
    assert paused_chats() == []  # announcements in other topics of the chat go on

    assert "Chat not found" in signed_in().get(PAGE).content.decode()


@pytest.mark.django_db
def test_a_group_that_became_a_supergroup_is_followed(place: Place) -> None:
    new = place.api.migrate(place.group)

    assert send_test_messages(make_operator().user.pk) == 1

    assert len(place.posted(new)) == 1
    assert PlatformSettings.objects.get().chat_id == new.id


@pytest.mark.django_db
def test_test_messages_count_toward_the_limit_of_the_chat(place: Place) -> None:
    user = make_operator().user
    place.settings.TELEGRAM_MESSAGES_PER_MINUTE = 1

    assert [send_test_messages(user.pk) for _ in range(2)] == [1, 0]

    assert len(place.posted()) == 1
