from typing import Any

from django.conf import settings

from core.command_line import JSONCommand
from core.version import VERSION


class Command(JSONCommand):
    help = "Prints the version of the product and the version of the API."
    requires_system_checks = ()  # also works with invalid settings

    def answer(self, **options: Any) -> dict[str, Any]:
        return {"version": VERSION, "api_version": settings.SPECTACULAR_SETTINGS["VERSION"]}
