"""Registers the system checks, makes names translatable, and starts tracing.

The app has one model: the encryption keys.
"""

from django.apps import AppConfig
from django.conf import settings

from core.environment.stop import stop_start


class CoreConfig(AppConfig):
    name = "core"
    verbose_name = "Service"

    def ready(self) -> None:
        from core import checks  # noqa: F401, PLC0415  the import registers the checks
        from core.names import translate_names  # noqa: PLC0415  imports models

        translate_names()
        if settings.TRACES_URL:
            _trace()


def _trace() -> None:
    try:
        from core.tracing import start_tracing  # noqa: PLC0415  only if wanted
    except ImportError:
        stop_start(
            "OTEL_EXPORTER_OTLP_ENDPOINT", "is set, but requirements/tracing.txt is not installed."
        )
    start_tracing()
