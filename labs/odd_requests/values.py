"""Odd values, texts and pieces of JSON."""

import json
import random
from typing import Any

TEXTS = [
    *("", " ", "\t", "0", "-1", "1", "1.0", "1e2", "true", "null", "NaN", "None", "voucher"),
    *("top_up", "TOP_UP", "00123", "a" * 64, "a" * 65, "a" * 255, "a" * 256, "x" * 5000),
    *("\x00", "a\x00b", "\ud800", "\udfff\ud800", "\U0001f600", "é", "e\u0301", "\u202e", "\ufeff"),
    *(
        "\u0663",
        "\uff11\uff12",
        "ß",
        "\ufb01",
        "../../etc",
        "%00",
        "%2e%2e",
        "' OR 1=1 --",
        "{{7*7}}",
        "${x}",
    ),
    *(
        "<script>",
        "\r\nX-Odd: 1",
        "a/b",
        "#:/._-",
        "-a",
        " a",
        "a ",
        "line\nbreak",
        "\x7f",
        "\x1b[0m",
    ),
]
NUMBERS = [
    *(0, 1, 2, 3, 99, 100, 101, -1, 2**31 - 1, 2**31, 2**53, 2**63 - 1, 2**63, 2**64, -(2**63)),
    *(10**30, 1.0, 1.5, 0.1, -0.0, 1e308),
]
# Characters: printable, control, other scripts, surrogates, beyond 16 bits.
RANGES = [(0x20, 0x7F), (0x00, 0x20), (0x80, 0x3000), (0xD800, 0xE000), (0x10000, 0x110000)]
# Numbers as JSON text, which Python would not write.
RAW_NUMBERS = [
    *("1e2", "1E+2", "1e-2", "1.00", "100e-2", "1e400", "1e999999999999999999999", "-0", "0.0"),
    *("NaN", "Infinity", "-Infinity", "01", "+1", ".5", "1.", "0x1", "1_0", "9" * 5000, "-"),
]


def text(chance: random.Random) -> str:
    if chance.random() < 0.7:
        return chance.choice(TEXTS)
    size = chance.choice((1, 2, 3, 5, 8, 66))
    return "".join(chr(_character(chance)) for _ in range(size))


def _character(chance: random.Random) -> int:
    first, last = chance.choice(RANGES)
    return first + int(chance.random() * (last - first))


def value(chance: random.Random, depth: int = 0) -> Any:
    """Any JSON value, mostly a small one."""
    pick = chance.random()
    if pick < 0.35:
        return text(chance)
    if pick < 0.65:
        return chance.choice(NUMBERS)
    if pick < 0.8 or depth > 3:
        return chance.choice((None, True, False))
    if pick < 0.9:
        return [value(chance, depth + 1) for _ in range(chance.randrange(4))]
    return {text(chance): value(chance, depth + 1) for _ in range(chance.randrange(4))}


def nested(chance: random.Random) -> str:
    """JSON text that is nested deeply."""
    depth = chance.choice((31, 32, 33, 34, 100, 1000, 20_000))
    opened, closed = chance.choice((("[", "]"), ('{"a":', "}")))
    return opened * depth + "1" + closed * depth


def broken(chance: random.Random, good: str) -> bytes:
    """A body that is not one JSON object as the service wants it, made from a good one."""
    body: bytes = chance.choice(_BREAKS)(chance, good)
    return body


def _duplicate(chance: random.Random, good: str) -> bytes:
    name = chance.choice(list(json.loads(good)) or ["quantity"])
    return f"{{{json.dumps(name)}: 1, {json.dumps(name)}: 1, {good[1:]}".encode()


_BREAKS = [
    lambda chance, good: b"",
    lambda chance, good: good.encode()[: chance.randrange(len(good))],
    lambda chance, good: good.encode() + chance.choice((b"x", b"{}", b"\x00", b",")),
    lambda chance, good: good.encode("utf-16"),
    lambda chance, good: b"\xef\xbb\xbf" + good.encode(),
    lambda chance, good: good.encode().replace(b'"', b"'"),
    lambda chance, good: good.encode().replace(b'"', b'"\xff', 1),
    lambda chance, good: b"[" + good.encode() + b"]",
    lambda chance, good: json.dumps(chance.choice((None, True, 1, "text", []))).encode(),
    lambda chance, good: nested(chance).encode(),
    lambda chance, good: f'{{"a": {nested(chance)}, {good[1:]}'.encode(),
    lambda chance, good: good.encode()[:-1] + b', "odd": "\\ud800"}',
    lambda chance, good: good.encode()[:-1] + b', "odd": "\\u0000"}',
    lambda chance, good: good.encode()[:-1] + b', "odd": 9e999999999999999999999}',
    lambda chance, good: good.encode()[:-1] + b', "odd": NaN}',
    lambda chance, good: chance.randbytes(chance.choice((1, 10, 200))) + b"\xff",
    _duplicate,
]
