from typing import Any

from core.command_line import JSONCommand
from operators.upkeep.reseal import reseal_all, retire_keys


class Command(JSONCommand):
    help = (
        "Seals all values again with the first key of CODE_ENCRYPTION_KEYS, and prints the keys in"
        " use. It waits for a running import of codes."
    )

    def answer(self, **options: Any) -> dict[str, Any]:
        return {"resealed": reseal_all(), "keys_in_use": retire_keys()}
