"""Sends warnings to staff in Telegram.

A row is claimed and committed before it is sent, so of two workers one sends. A message whose
answer was lost is not sent again: the warning is on the overview, too.
"""

from datetime import timedelta
from html import escape

import structlog
from django.conf import settings
from django.db.models import QuerySet
from django.utils import timezone

from operators.telegram import bot_api, chats
from operators.telegram.chats import Target
from operators.telegram.messages.message import MAX_LENGTH, Message
from operators.telegram.models import TelegramLink
from operators.warnings.models import WarningPost

logger = structlog.get_logger(__name__)

LEASE = timedelta(minutes=1)  # longer than a call may take
TOO_OLD = timedelta(days=1)
AT_ONCE = 50


def post_warnings() -> int:
    """Sends the messages that are due; returns how many were sent."""
    if not settings.TELEGRAM_BOT_TOKEN:
        return 0
    ids = list(_due().order_by("due_at", "pk").values_list("pk", flat=True)[:AT_ONCE])
    return sum(_post(pk) for pk in ids)


def _due() -> QuerySet[WarningPost]:
    return WarningPost.objects.filter(ended_at=None, due_at__lte=timezone.now())


def _post(pk: int) -> bool:
    if not _due().filter(pk=pk).update(due_at=timezone.now() + LEASE):
        return False
    post = WarningPost.objects.get(pk=pk)
    link = TelegramLink.objects.filter(user=post.user_id, user__is_active=True).first()
    too_old = post.created_at < timezone.now() - TOO_OLD
    if link is None or too_old:
        return _end(pk, sent=False)
    if not chats.take_slot(link.telegram_user_id):
        return False
    first, *others = [escape(line) for line in post.lines]
    text = "\n".join([f"<b>⚠️ {first}</b>", *others])[:MAX_LENGTH]
    try:
        bot_api.send(
            target=Target(link.telegram_user_id), message=Message(text=text, rows=[], version=0)
        )
    except (bot_api.NotNow, bot_api.Unreachable) as error:
        logger.warning("warning_not_posted", post=pk, cause=bot_api.describe(error))
        return False
    except bot_api.Trouble as error:
        logger.error("warning_not_posted", post=pk, cause=bot_api.describe(error))
        return _end(pk, sent=False)
    return _end(pk, sent=True)


def _end(pk: int, *, sent: bool) -> bool:
    WarningPost.objects.filter(pk=pk).update(ended_at=timezone.now())
    return sent
