"""The documentation's advice for each code and reason. advice.json is made from its table."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Optional

from voucher_topup.wire import Failure


@dataclass(frozen=True)
class Advice:
    """Whether the wallet was debited, and what to do."""

    charged: str
    act: str


@lru_cache(maxsize=1)
def table() -> Mapping[str, Mapping[str, Advice]]:
    """`{"codes": {code: advice}, "reasons": {reason: advice}}`."""
    text = (Path(__file__).parent / "advice.json").read_text()
    return {
        kind: {name: Advice(**advice) for name, advice in rows.items()}
        for kind, rows in json.loads(text).items()
    }


def advice(error: Failure) -> Optional[Advice]:
    """The advice for the reason, or else for the code; None if this version knows neither."""
    rows = table()
    by_reason = rows["reasons"].get(error.reason.value) if error.reason else None
    return by_reason or rows["codes"].get(error.code.value)
