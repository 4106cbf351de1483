from typing import Any

from core.command_line import JSONCommand
from operators.telegram.messages.sweep import sweep_announcements


class Command(JSONCommand):
    help = "Sends the Telegram announcements and edits that are due. Celery beat also runs it."

    def answer(self, **options: Any) -> dict[str, Any]:
        return dict(sweep_announcements())
