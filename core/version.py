"""The version of the product. The version of the API is in its path and its OpenAPI document.

`make release` writes this line. No response of the API contains it.
"""

import structlog
from django.conf import settings

VERSION = "1.0.1.dev0"


def log_start(process: str) -> None:
    """Logs which version starts in a process such as `web` or `worker`, with which settings."""
    structlog.get_logger(__name__).info(
        "process_started",
        process=process,
        version=VERSION,
        settings=settings.SETTINGS_MODULE,
    )
