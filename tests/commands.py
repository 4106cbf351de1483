"""Runs management commands as a shell does: arguments in, one JSON object or one line out."""

import io
import json
import re
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


def doubts_in(words: str) -> list[str]:
    """The ids of the doubts that a command names."""
    return [found[1] for found in re.finditer(r"\[([0-9a-f]{8})\]", words)]


def run_confirmed(*words: object) -> dict[str, Any]:
    """What a command prints, after all its doubts are confirmed."""
    try:
        return run(*words)
    except CommandError as refused:
        ids = doubts_in(str(refused))
        if not ids:
            raise
    return run(*words, *(word for one in ids for word in ("--confirm", one)))
