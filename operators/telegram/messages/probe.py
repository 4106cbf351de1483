"""Test messages: they show that the chats of the settings and routes take messages."""

from datetime import timedelta
from html import escape

import structlog
from django.contrib.auth.models import User

from operators.telegram import bot_api, chats
from operators.telegram.chats import Target
from operators.telegram.messages.message import Message

logger = structlog.get_logger(__name__)


def send_test_messages(*, user_id: int) -> int:
    """Posts one message in each chat and topic; returns how many were posted.

    A failure is kept with the chat, where the page of the settings shows it. It pauses the chat
    only if Telegram asks for that: another topic of the chat may work.
    """
    name = escape(User.objects.get(pk=user_id).get_username())
    text = f"Test message, sent by {name} from the back office. Orders will be announced here."
    message = Message(text=text, rows=[], version=0)
    return sum(_post(target, message) for target in chats.read_platform().targets())


def _post(target: Target, message: Message) -> bool:
    if not chats.take_slot(target.chat_id):
        return False
    try:
        try:
            bot_api.send(target=target, message=message)
        except bot_api.ChatMoved as moved:
            chats.follow_chat(target.chat_id, moved.chat_id)
            bot_api.send(target=Target(moved.chat_id, target.topic_id), message=message)
    except bot_api.Trouble as trouble:
        logger.warning("test_message_failed", chat=target.chat_id, cause=str(trouble))
        wait = trouble.wait if isinstance(trouble, bot_api.NotNow) else timedelta(0)
        chats.pause(target.chat_id, error=str(trouble), wait=wait)
        return False
    chats.note_success(target.chat_id)
    return True
