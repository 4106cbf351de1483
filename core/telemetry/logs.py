"""Logging: one JSON object per line on stderr, with the request id that the response carries.

Logs never contain request or response bodies, headers, query strings, or local variables of a
traceback. Callers log names and ids, not values that merchants sent. Every URL of the Telegram Bot
API contains the bot token, so loggers that write URLs are raised to WARNING, and the token is
replaced in every line.
"""

import io
import json
import logging.config
import os
import re
import sys
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any

import orjson
import structlog

# The part of a PostgreSQL error that quotes values of the refused row.
DETAIL = re.compile(r"DETAIL: .*?(?=(?:\n|\\n)(?:HINT|CONTEXT|QUERY): |\n\n|\Z)", re.DOTALL)


def drop_details(
    logger: object, name: str, event: structlog.typing.EventDict
) -> structlog.typing.EventDict:
    """structlog processor: removes row values from quoted database errors."""
    for key, value in event.items():
        if isinstance(value, str) and "DETAIL: " in value:
            event[key] = DETAIL.sub("DETAIL: …", value)
    return event


add_time = structlog.processors.TimeStamper(fmt="iso", utc=True)
SHARED_PROCESSORS: list[structlog.typing.Processor] = [
    structlog.contextvars.merge_contextvars,
    structlog.stdlib.add_log_level,
    structlog.stdlib.add_logger_name,
    add_time,
    structlog.processors.format_exc_info,
    drop_details,
]


class RedactingRenderer:
    """structlog renderer: writes the event as JSON and replaces each secret with `***`.

    The line is ASCII, because readers disagree about which other characters end a line.
    """

    def __init__(self, secrets: Sequence[str]) -> None:
        self._render_any = json.JSONEncoder(default=repr, separators=(",", ":")).encode
        self._secrets = [json.dumps(secret)[1:-1] for secret in secrets if secret]

    def __call__(self, logger: Any, name: str, event: Any) -> str:
        line = self._render(event)
        for secret in self._secrets:
            line = line.replace(secret, "***")
        return line

    def _render(self, event: Any) -> str:
        with suppress(TypeError):  # orjson refuses large numbers and lone surrogates
            line = orjson.dumps(event, default=repr, option=_AS_PYTHON_SHOWS_THEM)
            if line.isascii():
                return line.decode()
        return self._render_any(event)


_AS_PYTHON_SHOWS_THEM = orjson.OPT_PASSTHROUGH_DATETIME | orjson.OPT_PASSTHROUGH_DATACLASS


def logging_config(
    *,
    level: str,
    secrets: Sequence[str] = (),
    report: structlog.typing.Processor | None = None,
) -> dict[str, Any]:
    """The `logging` configuration for a level such as "INFO". `secrets` appear in no line.

    `report` receives each line while its exception is an object (core/telemetry/error_reports.py).
    """
    processors = list(SHARED_PROCESSORS)
    if report:
        processors.insert(processors.index(structlog.processors.format_exc_info), report)
    return {
        "version": 1,
        "disable_existing_loggers": False,
        "formatters": {
            "json": {
                "()": structlog.stdlib.ProcessorFormatter,
                "processor": RedactingRenderer(secrets),
                "foreign_pre_chain": processors,
            }
        },
        "handlers": {"stderr": {"class": "logging.StreamHandler", "formatter": "json"}},
        "root": {"handlers": ["stderr"], "level": level},
        "loggers": {
            # Authlib logs PKCE verifiers at DEBUG.
            "authlib": {"level": "WARNING"},
            # RequestLogMiddleware logs each request, with its id and without the query string.
            "django.request": {"level": "CRITICAL"},
            # A wrong Host or too many parameters, which strangers send: RequestLogMiddleware logs
            # the refused request.
            "django.security": {"level": "CRITICAL"},
            "django.server": {"level": "WARNING"},
            "httpcore": {"level": "WARNING"},
            "httpx": {"level": "WARNING"},
            "telegram": {"level": "WARNING"},
        },
    }


def configure(config: dict[str, Any]) -> None:
    """LOGGING_CONFIG: gives the standard library and structlog the same processors and handler."""
    logging.config.dictConfig(config)
    # No line shows the thread, process or caller, so logging does not look them up (logging HOWTO).
    logging.logThreads = logging.logMultiprocessing = False
    logging._srcfile = None
    structlog.configure(
        processors=[
            structlog.stdlib.filter_by_level,
            *config["formatters"]["json"]["foreign_pre_chain"],
            structlog.stdlib.ProcessorFormatter.wrap_for_formatter,
        ],
        logger_factory=structlog.stdlib.LoggerFactory(),
        cache_logger_on_first_use=True,
    )


# A line of more than 4 kB may need several writes to a pipe.
_ONE_LINE_AT_A_TIME = threading.Lock()


def stderr_writer() -> Callable[[bytes], None]:
    """A function that writes a line to the present stderr, if possible with one call of the system.
    It raises OSError or ValueError when the line cannot be written."""
    stream = sys.stderr

    def write(line: bytes) -> None:
        descriptor = stream.fileno()
        with _ONE_LINE_AT_A_TIME:
            while line:
                line = line[os.write(descriptor, line) :]

    def write_in_memory(line: bytes) -> None:
        stream.write(line.decode())

    try:
        stream.fileno()
    except io.UnsupportedOperation:
        return write_in_memory
    return write


class DirectLogger:
    """Writes one JSON line for each call to stderr, or with `write`, without the standard library
    and structlog.

    The request log and the purchase log write a line for each request or purchase. A line through
    structlog took a tenth of a purchase's processor time, and through the standard library twice as
    long (docs/performance.md). The lines quote no database errors and need
    no `drop_details`. Writing raises OSError or ValueError when stderr cannot be written; the
    caller handles both.
    """

    def __init__(
        self,
        name: str,
        *,
        level: str,
        secrets: Sequence[str] = (),
        write: Callable[[bytes], None] | None = None,
    ) -> None:
        self._name = name
        self._level = logging.getLevelNamesMapping()[level]
        self._render = RedactingRenderer(secrets)
        self._write_line = write or stderr_writer()

    def info(self, event: str, **values: Any) -> None:
        self._write(logging.INFO, "info", event, values)

    def error(self, event: str, **values: Any) -> None:
        self._write(logging.ERROR, "error", event, values)

    def _write(self, level: int, level_name: str, event: str, values: dict[str, Any]) -> None:
        if level < self._level:
            return
        line = {
            "event": event,
            **values,
            **structlog.contextvars.get_contextvars(),
            "logger": self._name,
            "level": level_name,
            "timestamp": datetime.now(UTC).isoformat().replace("+00:00", "Z"),
        }
        self._write_line(f"{self._render(None, level_name, line)}\n".encode())
