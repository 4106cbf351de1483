from typing import Any

from core.command_line import JSONCommand
from topups.fulfilment.refunds import refunds_due, sweep_refunds


class Command(JSONCommand):
    help = "Carries out due refunds of failed top-up orders."

    def answer(self, **options: Any) -> dict[str, Any]:
        return {"refunded": sweep_refunds(), "still_due": refunds_due().count()}
