from typing import Any

from config.command_line import JSONCommand
from operators.telegram.announcement_sweep import sweep_announcements


class Command(JSONCommand):
    help = "Announces and edits in Telegram what is due, as Celery beat does."

    def answer(self, **options: Any) -> dict[str, Any]:
        return dict(sweep_announcements())
