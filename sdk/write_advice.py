"""Writes the advice of the documentation into the client library: `make sdk`."""

import json
from dataclasses import asdict
from pathlib import Path

from merchants.views.docs_content import CODES, REASONS

SDK = Path(__file__).parent
FILE = SDK / "python/src/voucher_topup/advice.json"


def advice() -> str:
    """The text of advice.json."""
    table = {
        "codes": {code.value: asdict(advice) for code, advice in CODES.items()},
        "reasons": {reason.value: asdict(advice) for reason, advice in REASONS.items()},
    }
    return json.dumps(table, indent=2) + "\n"


if __name__ == "__main__":
    FILE.write_text(advice())
