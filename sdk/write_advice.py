"""Writes the advice of the documentation into both client libraries: `make sdk`."""

import json
from dataclasses import asdict
from pathlib import Path

from core.api.advice import CODES, REASONS

SDK = Path(__file__).parent


def advice_files() -> dict[Path, str]:
    """The files, and what belongs in them."""
    table = {
        "codes": {code.value: asdict(advice) for code, advice in CODES.items()},
        "reasons": {reason.value: asdict(advice) for reason, advice in REASONS.items()},
    }
    text = json.dumps(table, indent=2)
    rows = "Record<string, { charged: string; act: string } | undefined>"
    module = (
        "// Written by `make sdk` from the documentation.\n"
        f"export const table: {{ codes: {rows}; reasons: {rows} }} = {text};\n"
    )
    return {
        SDK / "python/src/voucher_topup/advice.json": text + "\n",
        SDK / "typescript/src/advice.ts": module,
    }


if __name__ == "__main__":
    for file, content in advice_files().items():
        file.write_text(content)
