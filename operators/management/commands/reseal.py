from typing import Any

from config.command_line import JSONCommand
from operators.reseal import reseal_all, retire_keys


class Command(JSONCommand):
    help = "Re-encrypts all sealed values with the first key of CODE_ENCRYPTION_KEYS."

    def answer(self, **options: Any) -> dict[str, Any]:
        return {"resealed": reseal_all(), "keys_in_use": retire_keys()}
