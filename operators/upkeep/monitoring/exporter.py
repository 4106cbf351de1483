"""The exporter: serves this host's counters and the service's gauges to Prometheus.

    GET /metrics          what the web processes and workers of this host counted
    GET /metrics/service  the gauges that the apps declare, read from the database

Prometheus scrapes the first path of each host's exporter, and the second of one or several. Only
a request for the second reads the database. The public web server has none of these paths.
"""

from collections.abc import Iterable, Iterator, Sequence
from wsgiref.simple_server import WSGIRequestHandler, make_server
from wsgiref.types import StartResponse, WSGIApplication, WSGIEnvironment

import structlog
from django.conf import settings
from django.db import connection
from prometheus_client import CollectorRegistry
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.exposition import ThreadingWSGIServer, make_wsgi_app
from prometheus_client.multiprocess import MultiProcessCollector
from prometheus_client.registry import Collector

from operators.upkeep.monitoring.gauges import GAUGES, database_answers, reader

logger = structlog.get_logger(__name__)

UP, FAILED = "voucher_database_up", "voucher_gauges_failed"
OWN_GAUGES = {
    UP: "1 if the database responded to the exporter; 0 if not.",
    FAILED: "Groups of gauges that could not be read; these gauges are missing.",
}


def all_gauges() -> Iterator[tuple[str, Sequence[str], str]]:
    """The name, labels and meaning of every gauge of the service."""
    for gauges in GAUGES:
        for name, meaning in gauges.meanings.items():
            yield name, gauges.labels, meaning
    for name, meaning in OWN_GAUGES.items():
        yield name, (), meaning


class ServiceGauges(Collector):
    """The declared gauges. A gauge that could not be read is left out, never repeated."""

    def collect(self) -> Iterator[GaugeMetricFamily]:
        up = database_answers()
        readings, failed = reader.read() if up else ([], len(GAUGES))
        for reading in readings:
            family = GaugeMetricFamily(reading.name, reading.meaning, labels=reading.labels)
            for labels, value in reading.samples:
                family.add_metric(labels, value)
            yield family
        for name, value in ((UP, up), (FAILED, failed)):
            yield GaugeMetricFamily(name, OWN_GAUGES[name], value=float(value))

    def describe(self) -> Iterable[GaugeMetricFamily]:
        """Nothing: registering the collector must not read the database."""
        return []


def application() -> WSGIApplication:
    """The WSGI application of the exporter."""
    host, service = CollectorRegistry(), CollectorRegistry()
    settings.METRICS_DIR.mkdir(mode=0o700, parents=True, exist_ok=True)
    MultiProcessCollector(host, path=str(settings.METRICS_DIR))  # type: ignore[no-untyped-call]
    service.register(ServiceGauges())
    pages: dict[str, WSGIApplication] = {
        "/metrics": make_wsgi_app(host),
        "/metrics/service": make_wsgi_app(service),
    }

    def respond(environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        page = pages.get(environ.get("PATH_INFO", ""))
        if page is None:
            start_response("404 Not Found", [("Content-Type", "text/plain")])
            return [b"GET /metrics or /metrics/service\n"]
        return page(environ, start_response)

    return respond


class _Handler(WSGIRequestHandler):
    def handle(self) -> None:
        try:
            super().handle()
        finally:
            connection.close()  # it belongs to this thread, which ends with the response

    def log_message(self, format: str, *arguments: object) -> None:
        """Nothing: a line for each scrape would hide the others."""


def run_exporter() -> None:
    """Serves until the process is stopped. Raises OSError if the address cannot be used."""
    server = make_server(
        settings.METRICS_HOST,
        settings.METRICS_PORT,
        application(),
        server_class=ThreadingWSGIServer,
        handler_class=_Handler,
    )
    logger.info("metrics_served", host=settings.METRICS_HOST, port=server.server_port)
    with server:
        server.serve_forever()
