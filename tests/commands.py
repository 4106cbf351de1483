"""Runs management commands as a shell does: arguments in, one JSON object or one line out."""

import io
import json
from decimal import Decimal
from typing import Any

import pytest
from django.core.management import CommandError, call_command


def run(*words: object) -> dict[str, Any]:
    """The one JSON object that the command printed, with amounts as decimals."""
    out = io.StringIO()
    call_command(*map(str, words), stdout=out, stderr=io.StringIO())
    answer: dict[str, Any] = json.loads(out.getvalue(), parse_float=Decimal)
    return answer


def refusal(*words: object) -> str:
    """The one line of the command's error. Checks that it printed nothing else."""
    out = io.StringIO()
    with pytest.raises(CommandError) as refused:
        call_command(*map(str, words), stdout=out, stderr=io.StringIO())
    assert out.getvalue() == ""
    line = str(refused.value)
    assert line.strip()
    assert len(line.splitlines()) == 1
    return line
