"""Faults between a bot and the Bot API."""

import random
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Fault:
    """A fault of one call. With `after`, the call takes effect and only its answer is affected."""

    status: int = 0
    description: str = ""
    parameters: dict[str, Any] = field(default_factory=dict)
    seconds: float = 0.0
    drop: bool = False
    after: bool = False


def TOO_MANY(retry_after: int) -> Fault:
    """429: the bot has sent too many messages."""
    return Fault(
        429,
        f"Too Many Requests: retry after {retry_after}",
        {"retry_after": retry_after},
    )


def ERROR(status: int, description: str = "Internal Server Error") -> Fault:
    return Fault(status, description)


def HANG(seconds: float, *, after: bool = False) -> Fault:
    """No answer for this many seconds; then the connection ends."""
    return Fault(seconds=seconds, drop=True, after=after)


def SLOW(seconds: float) -> Fault:
    """The answer comes after this many seconds."""
    return Fault(seconds=seconds, after=True)


def DROP(*, after: bool = False) -> Fault:
    """The connection ends without an answer."""
    return Fault(drop=True, after=after)


@dataclass
class Disorder:
    """The shares (0 to 1) of presses that are lost, duplicated or reordered on their way."""

    lost: float = 0.0
    duplicated: float = 0.0
    reordered: float = 0.0
    seed: int = 1
    behind: int = 5  # a reordered press arrives after this many others

    def __post_init__(self) -> None:
        self._random = random.Random(self.seed)
        self.seen = {"lost": 0, "duplicated": 0, "reordered": 0, "straight": 0}

    def fate(self) -> str:
        """`lost`, `duplicated`, `reordered` or `straight`."""
        dice = self._random.random()
        for name in ("lost", "duplicated", "reordered"):
            dice -= getattr(self, name)
            if dice < 0:
                break
        else:
            name = "straight"
        self.seen[name] += 1
        return name
