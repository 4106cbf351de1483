"""`make run` keeps the lines of background processes off the screen, except for warnings."""

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
WARNING = _line({"event": "Task failed", "level": "warning"})
LIFE = _line({"event": "orders_logged", "number": 0, "level": "info"})
ODD = ["Traceback (most recent call last):", "[]", "1", '{"level": []}', "{}"]


@pytest.mark.parametrize(
    ("name", "printed"), [("worker", [WARNING, *ODD]), ("web", [INFORMATION, WARNING, *ODD])]
)
def test_information_of_background_processes_is_only_logged(
    name: str, printed: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    said = [INFORMATION, LIFE, WARNING, *ODD]
    program = [executable, "-c", f"print(*{said!r}, sep=chr(10))"]
    child = Process(name, program, environment={}, folder=tmp_path, output=PIPE)

    assert child.popen.stdout
    with ExitStack() as stack, child.popen.stdout:
        supervisor._relay(child, supervisor._open_log(stack, tmp_path / "service.log"))
        child.wait()

    logged = (tmp_path / "service.log").read_text().splitlines()
    assert [line.split(" | ")[1] for line in logged] == said
    assert [line.split(" | ")[1] for line in capsys.readouterr().out.splitlines()] == printed
