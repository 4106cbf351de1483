from typing import Any

from core.command_line import JSONCommand
from idempotency.cleanup import cleanup_records


class Command(JSONCommand):
    help = "Deletes expired idempotency records."

    def answer(self, **options: Any) -> dict[str, Any]:
        return {"deleted": cleanup_records()}
