"""A receiver of OTLP traces and Sentry envelopes over real HTTP, as bytes and as objects."""

import gzip
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest


class Receiver:
    """Keeps every body that was posted to it."""

    def __init__(self, port: int) -> None:
        self.port = port
        self.traces: list[bytes] = []
        self.envelopes: list[bytes] = []

    @property
    def environment(self) -> dict[str, str]:
        """Settings with which a process reports here, without waiting to collect more."""
        return {
            "OTEL_EXPORTER_OTLP_ENDPOINT": f"http://127.0.0.1:{self.port}",
            "OTEL_BSP_SCHEDULE_DELAY": "50",
            "SENTRY_DSN": f"http://public@127.0.0.1:{self.port}/1",
        }

    @property
    def bodies(self) -> list[bytes]:
        return [*self.traces, *self.envelopes]

    def spans(self) -> list[Any]:
        return [
            span
            for body in self.traces
            for resource in ExportTraceServiceRequest.FromString(body).resource_spans
            for scope in resource.scope_spans
            for span in scope.spans
        ]

    def span(self, name: str) -> Any:
        """The first span of this name; None when there is none yet."""
        return next((span for span in self.spans() if span.name == name), None)

    def reports(self) -> list[dict[str, Any]]:
        """The events in the envelopes: a header, then pairs of an item's header and its body."""
        found = []
        for body in self.envelopes:
            lines = body.splitlines()
            for header, item in zip(lines[1::2], lines[2::2], strict=True):
                if json.loads(header)["type"] == "event":
                    found.append(json.loads(item))
        return found

    def report(self, message: str) -> dict[str, Any] | None:
        return next((one for one in self.reports() if one["message"] == message), None)


@contextmanager
def running_receiver() -> Iterator[Receiver]:
    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            encoding = self.headers["Content-Encoding"]
            assert encoding in (None, "gzip"), encoding
            body = gzip.decompress(body) if encoding else body
            (receiver.traces if self.path == "/v1/traces" else receiver.envelopes).append(body)
            self.send_response(200)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *arguments: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    receiver = Receiver(server.server_port)
    thread = threading.Thread(target=server.serve_forever, args=[0.05])
    thread.start()
    try:
        yield receiver
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
