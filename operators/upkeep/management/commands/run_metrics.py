import signal
from typing import Any

from django.core.management import CommandError

from core.command_line import ServiceCommand
from core.version import log_start
from operators.upkeep.monitoring.exporter import run_exporter


class Command(ServiceCommand):
    """Serves metrics to Prometheus until SIGTERM."""

    help = (
        "Serves the counters of this host's processes (/metrics) and the gauges of the whole"
        " service (/metrics/service) on METRICS_HOST and METRICS_PORT, until SIGTERM."
    )

    def handle(self, *args: Any, **options: Any) -> None:
        signal.signal(signal.SIGTERM, signal.default_int_handler)
        log_start("metrics")
        try:
            run_exporter()
        except KeyboardInterrupt:
            return
        except OSError as error:
            raise CommandError(f"The metrics cannot be served: {error}") from None
