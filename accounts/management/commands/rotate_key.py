from typing import Any

from django.core.management.base import CommandParser

from accounts.api_access.keys import MAX_OVERLAP_HOURS, rotate_key
from accounts.models import ApiClient
from core.command_line import JSONCommand, whole_number
from core.inputs import find_row


class Command(JSONCommand):
    help = (
        "Issues a new key for a client, prints it, and ends the other keys after an overlap. Each"
        " run issues another key."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("client_id", type=whole_number)
        parser.add_argument(
            "--overlap-hours",
            type=whole_number,
            default=24,
            metavar="N",
            help="how long the other keys still work, in hours: 0 ends them now"
            f" (default: 24, at most {MAX_OVERLAP_HOURS})",
        )

    def answer(self, **options: Any) -> dict[str, Any]:
        client = find_row(ApiClient.objects.all(), options["client_id"])
        key = rotate_key(client=client, overlap_hours=options["overlap_hours"], actor=None)
        return {"client_id": client.pk, "api_key": key}
