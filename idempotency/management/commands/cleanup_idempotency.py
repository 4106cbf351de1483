from typing import Any

from config.command_line import JSONCommand
from idempotency.cleanup import cleanup_records


class Command(JSONCommand):
    help = "Forgets idempotency records past their time."

    def answer(self, **options: Any) -> dict[str, Any]:
        return {"deleted": cleanup_records()}
