"""Reads lines of our own logs back from files, as log collectors keep them.

A log also holds text that strangers sent, such as the paths of requests. So a line that is acted on
carries a message authentication code, which only this service can make (`line_mac`).
"""

import base64
import fileinput
import hmac
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import orjson

from core.database.key_ring import key_ring
from core.inputs import InputProblem

MAC_BYTES = 16
EVENT_OF_PIECE = re.compile(r'(?<!\\)"event":\s*"(\w*)')


class LogLine(NamedTuple):
    """A line with an event: the file, where it is in it, and its values; None if it is damaged."""

    file: str
    place: str
    values: dict[str, Any] | None


def line_mac(event: str, values: Mapping[str, Any]) -> str:
    """The text that shows that a process of this service wrote these values in a line of this
    event. A rotation of the encryption keys does not change it."""
    text = orjson.dumps([event, values], option=orjson.OPT_SORT_KEYS)
    mac = hmac.digest(key_ring().derive(b"log-line"), text, "sha256")[:MAC_BYTES]
    return base64.b64encode(mac).decode()


def is_authentic(line: Mapping[str, Any], names: Sequence[str]) -> bool:
    """Whether a process of this service wrote the line with these values. Raises KeyError if the
    line lacks one."""
    mac = line_mac(line["event"], {name: line[name] for name in names})
    return hmac.compare_digest(mac.encode(), str(line["mac"]).encode())


def read_events(files: Sequence[Path], *events: str) -> Iterator[LogLine]:
    """The lines of these events, in the order of the files.

    `-` is stdin, and a file may be compressed (`.gz`). Skips other lines, pieces of other
    lines, and what a log collector puts around a line: text in front, or a JSON object with the
    line in one of its strings. Raises InputProblem for a file that cannot be read.
    """
    try:
        with fileinput.input(
            list(dict.fromkeys(map(str, files))), openhook=_open, encoding="utf-8"
        ) as lines:
            for line in lines:
                if not _names(line, events):
                    continue
                name = "-" if lines.isstdin() else lines.filename()
                place = f"{name}:{lines.filelineno()}"
                try:
                    values = _find(line, events)
                except _Unreadable as part:
                    if part.event in events:
                        yield LogLine(name, place, None)
                    values = _find_at_end(line, events)
                if values is not None:
                    yield LogLine(name, place, values)
    except OSError as error:
        raise InputProblem(f"Cannot read {error.filename}: {error.strerror}.") from None


class _Unreadable(ValueError):
    """A piece of a line. `event` is the event with which it begins; empty if it has none.

    In the rest of a long line that a container runtime has cut, what a stranger asked for is still
    inside a string, so its quotes are escaped.
    """

    def __init__(self, text: str) -> None:
        found = EVENT_OF_PIECE.search(text)
        self.event = found[1] if found else ""


def _open(name: Any, mode: str, **options: Any) -> Any:
    # fileinput accepts `errors` only without an `openhook`.
    return fileinput.hook_compressed(name, mode, **{**options, "errors": "replace"})


def _find(text: str, events: Sequence[str]) -> dict[str, Any] | None:
    """The object of an event in the text. It may be inside a string of an object that a log
    collector made, but not of another line of ours: that has an event, and quotes strangers."""
    if "{" not in text:
        return None
    try:
        values = json.loads(text[text.index("{") :])
    except (ValueError, RecursionError) as error:
        raise _Unreadable(text) from error
    if not isinstance(values, dict):
        return None
    if isinstance(name := values.get("event"), str):
        return values if name in events else None
    texts = (value for value in values.values() if isinstance(value, str))
    inside = (text for text in texts if _names(text, events))
    return next(filter(None, (_find(value, events) for value in inside)), None)


def _find_at_end(line: str, events: Sequence[str]) -> dict[str, Any] | None:
    """The object of the last event at the end of a damaged line; None if there is none.

    A full disk cuts a line off, and the next one follows it without a line break.
    """
    start = line.rfind('{"', 0, max(line.rfind(event) for event in events))
    try:
        return _find(line[max(start, 0) :], events)
    except _Unreadable:
        return None


def _names(text: str, events: Sequence[str]) -> bool:
    return any(event in text for event in events)
