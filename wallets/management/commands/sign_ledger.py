from typing import Any

from core.command_line import JSONCommand
from wallets.evidence.roots import sign_ledger


class Command(JSONCommand):
    help = "Signs the present state of all wallets, as the scheduler does once a day."

    def answer(self, **options: Any) -> dict[str, Any]:
        root = sign_ledger()
        return {"signed": root is not None, **(root.as_json() if root else {})}
