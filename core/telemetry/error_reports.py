"""Reports what is logged as an error to Sentry, if SENTRY_DSN is set. Otherwise nothing is loaded.

A report holds the type of the exception, the places of its traceback, and the ids of the log line.
Messages of exceptions, local variables, requests and source lines stay in the process: any of them
may contain a code, a key or a player id. The log line of the same request id has the message.
"""

import re
import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from core.environment.stop import stop_start

if TYPE_CHECKING:
    from structlog.typing import EventDict, Processor

ERRORS = ("error", "exception", "critical")  # the methods of a logger, or the names of levels
TAGS = ("request_id", "task_id", "task", "logger")
FRAME = ("filename", "abs_path", "function", "module", "lineno", "in_app")
SENT = (
    *("event_id", "timestamp", "platform", "level", "message", "tags", "exception"),
    *("release", "environment", "server_name", "sdk"),
)
# Our own events are constant words. Lines of other packages may quote values.
CONSTANT = re.compile(r"[a-z_]+")


def error_reporter(dsn: str, *, release: str) -> "Processor | None":
    """The structlog processor that reports errors to this address; None for an empty one.

    It belongs before the processor that turns an exception into text. It never raises: the line of
    an error that could not be reported has `report_failed` with the type of the problem.
    """
    if not dsn:
        return None
    try:
        import sentry_sdk  # noqa: PLC0415  only if wanted
        from sentry_sdk.utils import BadDsn, event_from_exception  # noqa: PLC0415
    except ImportError:
        stop_start("SENTRY_DSN", "is set, but requirements/sentry.txt is not installed.")
    try:
        sentry_sdk.init(
            dsn,
            release=release,
            default_integrations=False,
            auto_enabling_integrations=False,
            include_local_variables=False,
            include_source_context=False,
            max_request_body_size="never",
            max_breadcrumbs=0,
            auto_session_tracking=False,
            send_client_reports=False,
            before_send=_strip_values,  # type: ignore[arg-type]  # TypedDicts of the package
        )
    except BadDsn:
        stop_start("SENTRY_DSN", "is not an address of Sentry.")

    def report(logger: object, method: str, line: "EventDict") -> "EventDict":
        if method in ERRORS:
            try:
                error = _exception_of(line)
                event: dict[str, Any] = dict(event_from_exception(error)[0]) if error else {}
                sentry_sdk.capture_event(event | _describe(line))  # type: ignore[arg-type]
            except Exception as problem:  # the caller may just have committed a purchase
                line["report_failed"] = type(problem).__name__
        return line

    return report


def _exception_of(line: Mapping[str, Any]) -> BaseException | None:
    """The exception of a log line, which a caller gives in several ways; None without one."""
    error = line.get("exc_info")
    if isinstance(error, tuple):
        error = error[1]
    elif error and not isinstance(error, BaseException):
        error = sys.exc_info()[1]
    return error or None


def _describe(line: Mapping[str, Any]) -> dict[str, Any]:
    event = str(line.get("event", ""))
    return {
        "level": "error",
        "message": event if CONSTANT.fullmatch(event) else "error of a package",
        "tags": {name: str(line[name]) for name in TAGS if name in line},
    }


def _strip_values(event: Mapping[str, Any], hint: object) -> dict[str, Any]:
    """Sentry's `before_send`: the event with what may leave the process, and nothing else."""
    report = {name: event[name] for name in SENT if name in event}
    if errors := (event.get("exception") or {}).get("values"):
        report["exception"] = {"values": [_strip_message(error) for error in errors]}
    return report


def _strip_message(error: Mapping[str, Any]) -> dict[str, Any]:
    frames = (error.get("stacktrace") or {}).get("frames", [])
    return {
        "type": error.get("type"),
        "module": error.get("module"),
        "stacktrace": {
            "frames": [{name: frame[name] for name in FRAME if name in frame} for frame in frames]
        },
    }
