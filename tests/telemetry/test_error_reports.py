"""An error report that cannot be sent never fails the code that logs the error."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pytest
import sentry_sdk

from core.telemetry.error_reports import error_reporter

if TYPE_CHECKING:
    from structlog.typing import Processor


class Unreadable:
    def __str__(self) -> str:
        raise ValueError("no text")


@pytest.fixture
def report() -> Iterator["Processor"]:
    found = error_reporter("http://public@127.0.0.1:9/1", release="test")
    assert found is not None
    yield found
    sentry_sdk.get_client().close(timeout=0)
    sentry_sdk.get_global_scope().set_client(None)


def test_a_transport_that_fails_is_in_the_log_line(
    report: "Processor", monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*args: Any) -> None:
        raise RuntimeError("cannot start a thread")

    monkeypatch.setattr(sentry_sdk.get_client().transport, "capture_envelope", fail)
    line = report(None, "error", {"event": "purchase_failed"})
    assert line == {"event": "purchase_failed", "report_failed": "RuntimeError"}


def test_a_value_that_cannot_be_read_is_in_the_log_line(report: "Processor") -> None:
    line = report(None, "error", {"task": (task := Unreadable())})
    assert line == {"task": task, "report_failed": "ValueError"}
