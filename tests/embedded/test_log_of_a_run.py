"""`make run` prints requests and problems in short, and logs every line as it is."""

from contextlib import ExitStack
from functools import partial
from pathlib import Path
from subprocess import PIPE
from sys import executable

import pytest

from core.telemetry.logs import RedactingRenderer
from embedded import supervisor
from embedded.processes import Process

_line = partial(RedactingRenderer(()), None, "")
INFORMATION = _line({"event": "Task done", "level": "info"})
WARNING = _line({"event": "Task failed", "number": 7, "logger": "tasks", "level": "warning"})
ERROR = _line({"event": "request_failed", "level": "error", "exception": "Traceback:\n  x = 1"})
REQUEST, STYLE = (
    _line({"event": "request_finished", "code": code, "request": request, "level": "info"})
    for code, request in ((201, "POST /api/v1/orders"), (200, "GET /static/a.css"))
)
HOSTILE = _line(
    {"event": "request_finished", "code": 404, "request": "GET /\x1b[2J\nüb", "level": "info"}
)
ODD = ["Traceback (most recent call last):", "[]", "1", '{"level": []}', "{}"]


def test_requests_and_problems_are_printed_in_short(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    said = [INFORMATION, STYLE, REQUEST, HOSTILE, WARNING, ERROR, *ODD]
    program = [executable, "-c", f"print(*{said!r}, sep=chr(10))"]
    child = Process("web", program, environment={}, folder=tmp_path, output=PIPE)

    assert child.popen.stdout
    with ExitStack() as stack, child.popen.stdout:
        supervisor._relay(child, supervisor._open_log(stack, tmp_path / "service.log"))
        child.wait()

    logged = (tmp_path / "service.log").read_text().splitlines()
    assert [line.split(" | ")[1] for line in logged] == said
    printed = [
        "    web | 201 POST /api/v1/orders",
        r"    web | 404 GET /\x1b[2J\nüb",
        "    web | WARNING Task failed number=7",
        "    web | ERROR request_failed",
        "Traceback:",
        "  x = 1",
        *(f"    web | {line}" for line in ODD),
    ]
    assert capsys.readouterr().out.splitlines() == printed
