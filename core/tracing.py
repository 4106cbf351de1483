"""Sends traces to an OpenTelemetry collector. Loaded only if OTEL_EXPORTER_OTLP_ENDPOINT is set.

A span holds a name, its times, and the attributes in KEPT. Everything else that the instruments
collect stays in the process: addresses with query strings, headers, messages of exceptions. SQL
functions of a purchase are shown by their name, other statements without their literals.
"""

import re
from collections.abc import Mapping, Sequence
from functools import wraps
from typing import Any

from django.conf import settings
from opentelemetry import propagate, trace
from opentelemetry.context import Context
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.instrumentation.celery import CeleryInstrumentor
from opentelemetry.instrumentation.django import DjangoInstrumentor
from opentelemetry.instrumentation.psycopg import PsycopgInstrumentor
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import Event, ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter, SpanExportResult
from opentelemetry.trace import Status
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator
from opentelemetry.util.re import parse_env_headers

from core.database import functions, libpq
from core.version import VERSION

KEPT = {
    *("http.method", "http.request.method", "http.route"),
    *("http.status_code", "http.response.status_code"),
    *("celery.action", "celery.state", "celery.task_name", "messaging.message.id"),
    *("db.system", "db.system.name", "db.statement", "db.query.text"),
    *("error.type", "exception.type"),
}
STATEMENTS = {"db.statement", "db.query.text"}
LITERAL = re.compile(r"'(?:[^']|'')*'|\$(\w*)\$.*?\$\1\$|\b\d+\b", re.DOTALL)


def start_tracing() -> None:
    """Traces requests, tasks and statements of this process from now on."""
    resource = Resource.create({"service.name": "voucher", "service.version": VERSION})
    provider = TracerProvider(resource=resource)
    provider.add_span_processor(
        BatchSpanProcessor(_WithoutValues(OTLPSpanExporter(headers=dict(_headers()))))
    )
    trace.set_tracer_provider(provider)
    propagate.set_global_textmap(_FromMessagesOnly())
    DjangoInstrumentor().instrument()
    CeleryInstrumentor().instrument()  # type: ignore[no-untyped-call]
    PsycopgInstrumentor().instrument()
    _trace_functions()


def _headers() -> Mapping[str, str]:
    """The headers that the collector requires, from the variable or its file."""
    return parse_env_headers(settings.TRACES_HEADERS, liberal=True)


def _trace_functions() -> None:
    """Gives each call of an SQL function a span. They use no cursor, which psycopg's instrument
    would see (core/database/libpq.py)."""
    tracer = trace.get_tracer(__name__)
    call = libpq.call_function

    @wraps(call)
    def traced(connection: Any, function: str, arguments: tuple[Any, ...]) -> Any:
        with tracer.start_as_current_span(function, attributes={"db.system": "postgresql"}):
            return call(connection, function, arguments)

    # `functions` looks up `call_function` in its own namespace at each call.
    vars(functions)["call_function"] = traced


class _FromMessagesOnly(TraceContextTextMapPropagator):
    """A task continues the trace of the request that queued it. A request begins its own trace: its
    headers come from a merchant, who could choose what is sampled, and send any text."""

    def extract(
        self, carrier: Any, context: Context | None = None, *rest: Any, **more: Any
    ) -> Context:
        if isinstance(carrier, Mapping) and "REQUEST_METHOD" in carrier:
            return context or Context()
        return super().extract(carrier, context, *rest, **more)


class _WithoutValues(SpanExporter):
    """Passes spans on without anything that could be a secret."""

    def __init__(self, exporter: SpanExporter) -> None:
        self._exporter = exporter

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        return self._exporter.export([_strip_values(span) for span in spans])

    def shutdown(self) -> None:
        self._exporter.shutdown()

    def force_flush(self, timeout_millis: int = 30_000) -> bool:
        return self._exporter.force_flush(timeout_millis)


def _strip_values(span: ReadableSpan) -> ReadableSpan:
    return ReadableSpan(
        name=span.name,
        context=span.context,
        parent=span.parent,
        resource=span.resource,
        attributes=_filter(span.attributes),
        events=[Event(one.name, _filter(one.attributes), one.timestamp) for one in span.events],
        links=span.links,
        kind=span.kind,
        status=Status(span.status.status_code),
        start_time=span.start_time,
        end_time=span.end_time,
        instrumentation_scope=span.instrumentation_scope,
    )


def _filter(attributes: Mapping[str, Any] | None) -> dict[str, Any]:
    return {
        name: LITERAL.sub("?", str(value)) if name in STATEMENTS else value
        for name, value in (attributes or {}).items()
        if name in KEPT
    }
