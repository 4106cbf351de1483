"""Logs: one JSON object a line on stderr, each with the request id the answer carries.

What never reaches a log: request and response bodies, headers, query strings, and local variables
of a traceback. Callers log names and ids, not values that merchants sent. Telegram has its token in
every address it is called at, so what logs addresses is silent, and the token itself is taken out
of whatever is written.
"""

import json
import logging.config
import re
import sys
from collections.abc import Sequence
from typing import Any

import structlog

# What PostgreSQL adds to an error: the values of the row that it refused.
DETAIL = re.compile(r"DETAIL: .*?(?=(?:\n|\\n)(?:HINT|CONTEXT|QUERY): |\n\n|\Z)", re.DOTALL)


def drop_details(
    logger: object, name: str, event: structlog.typing.EventDict
) -> structlog.typing.EventDict:
    """Cuts the values out of every text that quotes an error of the database."""
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


class RenderWithout:
    """Renders a line of JSON in which none of these texts appears."""

    def __init__(self, secrets: Sequence[str]) -> None:
        self._render = structlog.processors.JSONRenderer()
        self._secrets = [json.dumps(secret)[1:-1] for secret in secrets if secret]

    def __call__(self, logger: Any, name: str, event: Any) -> str:
        line = str(self._render(logger, name, event))
        for secret in self._secrets:
            line = line.replace(secret, "***")
        return line


def logging_config(*, level: str, secrets: Sequence[str] = ()) -> dict[str, Any]:
    """The `logging` configuration for a level such as "INFO", and what no line may hold."""
    return {
        "version": 1,
        "disable_existing_loggers": False,
        "formatters": {
            "json": {
                "()": structlog.stdlib.ProcessorFormatter,
                "processor": RenderWithout(secrets),
                "foreign_pre_chain": SHARED_PROCESSORS,
            }
        },
        "handlers": {"stderr": {"class": "logging.StreamHandler", "formatter": "json"}},
        "root": {"handlers": ["stderr"], "level": level},
        "loggers": {
            # The request log below says the same with a request id and without the query string.
            "django.request": {"level": "CRITICAL"},
            "django.server": {"level": "WARNING"},
            "httpcore": {"level": "WARNING"},
            "httpx": {"level": "WARNING"},
            "telegram": {"level": "WARNING"},
        },
    }


def configure(config: dict[str, Any]) -> None:
    """Django's LOGGING_CONFIG: the standard library and structlog share one pipeline."""
    logging.config.dictConfig(config)
    # No line says the thread, the process or the caller, so none is found out (logging HOWTO).
    logging.logThreads = logging.logMultiprocessing = False
    logging._srcfile = None
    structlog.configure(
        processors=[
            structlog.stdlib.filter_by_level,
            *SHARED_PROCESSORS,
            structlog.stdlib.ProcessorFormatter.wrap_for_formatter,
        ],
        logger_factory=structlog.stdlib.LoggerFactory(),
        cache_logger_on_first_use=True,
    )


def request_logger(
    *, level: str, secrets: Sequence[str] = ()
) -> structlog.typing.FilteringBoundLogger:
    """A logger that writes its lines itself; they quote no error of the database, so nothing is cut
    out of them.

    One is written for each request, and on its way through the standard library a line takes twice
    as long (docs/performance.md). What the standard library does for itself is left to the caller:
    it raises OSError or ValueError where nothing can be written.
    """
    logger: structlog.typing.FilteringBoundLogger = structlog.wrap_logger(
        structlog.WriteLogger(sys.stderr),
        processors=[
            structlog.contextvars.merge_contextvars,
            structlog.processors.add_log_level,
            add_time,
            RenderWithout(secrets),
        ],
        wrapper_class=structlog.make_filtering_bound_logger(logging.getLevelNamesMapping()[level]),
    ).bind(logger="config.requests")
    return logger
