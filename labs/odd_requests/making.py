"""Strategies of odd requests, and the answers that each may get.

The order of the service's checks decides which answer is due (docs/architecture.md, "A purchase"):
route and size, key, `Idempotency-Key`, body, and only then what is in the database.
"""

import json
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any
from urllib.parse import quote

from labs.odd_requests.rules import storable, well_formed
from labs.odd_requests.world import World
from tests.generating import st

BASE = "/api/v1"
FRESH = "a-new-key"  # is replaced by a key that was never sent
MAX_BODY = 128 * 1024
MAX_PARAMETERS = 1000  # of a query; Django refuses more
BOUGHT = {
    *("201", "order_refused", "validation_failed", "variation_mismatch"),
    *("product_reference_not_found", "product_reference_ambiguous"),
}
MALFORMED = {"validation_failed", "product_reference_ambiguous"}
METHODS = ("PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "POST", "BREW", "X" * 40)
TYPES = (
    *("text/plain", "application/x-www-form-urlencoded", "text/json", "json", "", "/"),
    *("multipart/form-data; boundary=x", "application/jsonx", "application/xml"),
)
KNOWN = (
    *("product_id", "merchant_reference", "variation_id", "quantity", "delivery_type"),
    *("system_product_id", "player_id", "fields"),
)
PARAMETERS = ("page", "per_page", "search", "in_stock", "odd", "", "page[]", "pa\x00ge")
# Words that other programs treat in a special way. Hypothesis adds texts of all characters.
WORDS = (
    *("", " ", "\t", "0", "-1", "1", "1.0", "1e2", "true", "null", "NaN", "None", "voucher"),
    *("top_up", "TOP_UP", "00123", "a" * 64, "a" * 65, "a" * 255, "a" * 256, "x" * 5000, "a\x00b"),
    *("\ud800", "\udfff\ud800", "e\u0301", "\u202e", "\ufeff", "\u0663", "\uff11\uff12", "ß"),
    *("\ufb01", "../../etc", "%00", "%2e%2e", "' OR 1=1 --", "{{7*7}}", "<script>", "\r\nX-Odd: 1"),
    *("a/b", "#:/._-", "-a", " a", "a ", "line\nbreak", "\x7f", "\x1b[0m"),
)
NUMBERS = (
    *(0, 1, 2, 3, 99, 100, 101, -1, 2**31 - 1, 2**31, 2**53, 2**63 - 1, 2**63, 2**64, -(2**63)),
    *(10**30, 1.0, 1.5, 0.1, -0.0, 1e308),
)
# Numbers as JSON text, which Python would not write.
RAW_NUMBERS = (
    *("1e2", "1E+2", "1e-2", "1.00", "100e-2", "1e400", "1e999999999999999999999", "-0", "0.0"),
    *("NaN", "Infinity", "-Infinity", "01", "+1", ".5", "1.", "0x1", "1_0", "9" * 5000, "-"),
)
NESTED = tuple(
    opened * depth + "1" + closed * depth
    for depth in (31, 32, 33, 34, 1000, 20_000)
    for opened, closed in (("[", "]"), ('{"a":', "}"))
)
# Bodies that are not one JSON object as the service wants it, made from a good one.
BREAKS: tuple[Callable[[bytes], bytes], ...] = (
    lambda good: b"",
    lambda good: good[: len(good) // 2],
    *(lambda good, more=more: good + more for more in (b"x", b"{}", b"\x00", b",")),
    lambda good: good.decode().encode("utf-16"),
    lambda good: b"\xef\xbb\xbf" + good,
    lambda good: good.replace(b'"', b"'"),
    lambda good: good.replace(b'"', b'"\xff', 1),
    lambda good: b"[" + good + b"]",
    lambda good: b'{"odd": 1, "odd": 1, ' + good[1:],
    *(lambda good, text=text: text for text in (b"null", b"true", b"1", b'"text"', b"[]")),
    *(lambda good, text=text: text.encode() for text in NESTED),
    *(lambda good, text=text: f'{{"a": {text}, '.encode() + good[1:] for text in NESTED),
    *(
        lambda good, odd=odd: good[:-1] + f', "odd": {odd}}}'.encode()
        for odd in ('"\\ud800"', '"\\u0000"', "9e999999999999999999999", "NaN")
    ),
)

texts = st.sampled_from(WORDS) | st.text(st.characters(exclude_categories=()), max_size=66)
numbers = st.sampled_from(NUMBERS)
values: st.SearchStrategy[Any] = st.recursive(
    texts | numbers | st.sampled_from((None, True, False)),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=6,
)
fields = st.dictionaries(st.sampled_from(("1", "2", "3")) | texts, texts, max_size=2) | st.just(
    {str(number): "1" for number in range(31)}
)


@dataclass(frozen=True)
class Odd:
    """A request, and the answers that it may get: error codes, `200`, `201`, or `message` for a
    body with only a message. A purchase that succeeds is sent again in the ways of `again`."""

    method: str
    path: str  # with percent signs
    expected: frozenset[str]
    query: str = ""
    headers: tuple[tuple[str, str], ...] = ()
    body: bytes = b""
    again: tuple[str, ...] = ()

    def having(self, name: str, value: str) -> "Odd":
        kept = tuple(pair for pair in self.headers if pair[0] != name)
        return replace(self, headers=(*kept, (name, value)))


def repeats(odd: Odd, how: str) -> Odd:
    """The same purchase once more; another key, query or content decides the answer."""
    body, reused = odd.body, frozenset({"idempotency_key_reused"})
    match how:
        case "the same":
            return odd
        case "the same content":
            return replace(odd, body=json.dumps(json.loads(body), indent=2).encode())
        case "other content":
            more = b', "variation_id": 7}'
            return replace(odd, body=body.rstrip()[:-1] + more, expected=reused | MALFORMED)
        case "another query":
            return replace(odd, query=f"{odd.query}&again=1", expected=reused)
    return odd.having("Idempotency-Key", FRESH)


REPLAYS = ("the same", "the same content")
AGAIN = (*REPLAYS, "other content", "another query", "another key")


@st.composite
def requests(draw: st.DrawFn, world: World) -> Odd:
    make = draw(st.sampled_from((purchases, purchases, purchases, reads, reads, strays)))
    odd = draw(make(world))
    if odd.expected == {"message"}:
        return odd.having("Authorization", f"Bearer {world.buyers[0]}")
    expected, early = odd.expected, odd.expected & {"message"}
    who = draw(st.sampled_from(("rich",) * 12 + ("poor", "refused", "nobody", "unknown")))
    if who == "rich":
        bearer = f"Bearer {draw(st.sampled_from(world.buyers))}"
    elif who == "poor":
        bearer = f"Bearer {draw(st.sampled_from(world.poor))}"
        expected = expected | {"client_without_wallet"}
    elif who == "refused":
        key, code = draw(st.sampled_from(list(world.refused.items())))
        bearer, expected = f"Bearer {key}", early | {code}
    elif who == "nobody":
        return replace(odd, expected=early | {"missing_token"})
    else:
        bearer = draw(st.sampled_from(_bad_bearers(world.buyers[0])))
        expected = early | {"invalid_token"}
    return replace(odd, expected=expected).having("Authorization", bearer)


@st.composite
def purchases(draw: st.DrawFn, world: World) -> Odd:
    body = draw(_good_bodies(world))
    good = json.dumps(body).encode()
    for _ in range(draw(st.sampled_from((0, 0, 1, 1, 1, 2, 3)))):
        _change(draw, body)
    text = json.dumps(body, ensure_ascii=draw(st.booleans()))
    read = json.loads(text)  # two halves of a surrogate pair side by side are one character
    content = text.encode("utf-8", "surrogatepass")
    allowed = BOUGHT if well_formed(read) and storable(read) else MALFORMED
    form = draw(st.sampled_from(("as it is",) * 16 + ("broken",) * 3 + ("a raw number", "large")))
    if form == "broken":
        content, allowed = draw(st.sampled_from(BREAKS))(good), MALFORMED
    elif form == "a raw number":
        raw = draw(st.sampled_from(RAW_NUMBERS))
        with_mark = json.dumps({**json.loads(good), "quantity": "@"})
        content, allowed = with_mark.replace('"@"', raw).encode(), MALFORMED
    elif form == "large":
        content, allowed = content[:-1] + b" " * MAX_BODY + b"}", {"message"}
    again = tuple(draw(st.lists(st.sampled_from(AGAIN), max_size=3)))
    path = f"{BASE}/orders"
    odd = Odd("POST", path, frozenset(allowed), body=content, again=again)
    if form == "large":
        return odd
    odd = draw(_typed(odd))
    odd = draw(_keyed(odd))
    if draw(st.sampled_from((True, *(False,) * 15))):
        query = draw(queries())
        refused = {"message"} if query.count("&") > MAX_PARAMETERS else set()
        odd = replace(odd, query=query, expected=odd.expected | refused)
    return odd


@st.composite
def _good_bodies(draw: st.DrawFn, world: World) -> dict[str, Any]:
    kind = draw(st.sampled_from(("top-up", "voucher", "voucher", "variation", "reference")))
    if kind == "top-up":
        product, given = draw(st.sampled_from(world.topups))
        body = {"delivery_type": "top_up", "system_product_id": product, "player_id": "001"}
        return {**body, "fields": dict(given)} if given else body
    quantity = {"quantity": draw(st.sampled_from((1, 1, 2, 3)))}
    if kind == "voucher":
        return {"product_id": draw(st.sampled_from(world.products)), **quantity}
    if kind == "variation":
        product, variation = draw(st.sampled_from(world.variations))
        return {"product_id": product, "variation_id": variation, **quantity}
    return {"merchant_reference": draw(st.sampled_from(world.references)), **quantity}


def _change(draw: st.DrawFn, body: dict[str, Any]) -> None:
    """One odd change of a purchase body."""
    names = list(body) or ["quantity"]
    match draw(st.sampled_from(("value", "value", "none", "more", "unknown", "fields", "number"))):
        case "value":
            body[draw(st.sampled_from(names))] = draw(values)
        case "none":
            body.pop(draw(st.sampled_from(names)), None)
        case "more":
            body[draw(st.sampled_from(KNOWN))] = draw(values)
        case "unknown":
            body[draw(texts)] = draw(values)
        case "fields":
            body["fields"] = draw(fields)
        case _:
            body["quantity"] = draw(st.sampled_from((0, 1, 50, 100, 101, 3, 4)))


@st.composite
def _typed(draw: st.DrawFn, odd: Odd) -> Odd:
    good = ("application/json",) * 20 + ("Application/JSON; x=y",)
    kind = draw(st.sampled_from(good + TYPES))
    allowed = odd.expected if kind in good else frozenset({"validation_failed"})
    return replace(odd, expected=allowed).having("Content-Type", kind)


@st.composite
def _keyed(draw: st.DrawFn, odd: Odd) -> Odd:
    """Mostly a new key, sometimes an odd one, which decides the answer."""
    key, code = draw(
        st.sampled_from(
            (
                *((FRESH, ""),) * 16,
                *((f"{FRESH:{pad}>128}", "") for pad in "~!{"),
                *((key, "idempotency_key_required") for key in ("", " ", "\t")),
                *(("k" * size, "idempotency_key_too_long") for size in (129, 200, 4000)),
                *(
                    (f"1{odd}", "validation_failed")
                    for odd in ("é", "\xa0", "\x7f", "a\tb", "\xff")
                ),
            )
        )
    )
    expected = frozenset({code}) if code else odd.expected
    odd = replace(odd, expected=expected)
    return odd.having("Idempotency-Key", key) if key else odd


@st.composite
def reads(draw: st.DrawFn, world: World) -> Odd:
    query = draw(queries())
    part = draw(texts)
    kind = draw(st.sampled_from(("list", "list", "detail", "order", "other")))
    if kind == "list":
        path = draw(st.sampled_from(("/products", "/topup-products", "/orders")))
        allowed = {"message"} if query.count("&") > MAX_PARAMETERS else {"200"}
    elif kind == "detail":
        number = str(draw(st.sampled_from(world.products) | numbers))
        path = draw(st.sampled_from(("/products/", "/topup-products/"))) + quote(number, safe="")
        allowed = {"200", "product_not_found"} if number.isdigit() else {"message"}
    elif kind == "order":
        name = part.encode("utf-8", "surrogatepass")
        path = f"/orders/{quote(name, safe='')}"
        is_astray = not name or b"/" in name
        allowed = {"message"} if is_astray else {"order_not_found", "message"}
    else:
        path, allowed = draw(st.sampled_from(("/ping", "/balance"))), {"200"}
    method = draw(st.sampled_from(("GET",) * 15 + ("HEAD",)))
    body = draw(st.sampled_from((b"", b"{}", b"\xff" * 10)))
    return Odd(method, BASE + path, frozenset(allowed), query, body=body)


@st.composite
def strays(draw: st.DrawFn, world: World) -> Odd:
    """An unknown path, or a method that the path does not know."""
    method = draw(st.sampled_from(METHODS))
    path = draw(st.sampled_from(("/ping", "/balance", "/products", "/orders", "/products/1")))
    if draw(st.booleans()) or (method, path) == ("POST", "/orders"):
        method = draw(st.sampled_from(("GET", "POST")))
        path = f"/nothing/{quote(draw(texts).encode('utf-8', 'surrogatepass'), safe='/')}"
    body = draw(st.sampled_from((b"", b"{}", b"x" * 1000)))
    return Odd(method, BASE + path, frozenset({"message"}), draw(queries()), body=body)


@st.composite
def queries(draw: st.DrawFn) -> str:
    kind = draw(st.sampled_from(("none",) * 6 + ("odd",) * 9 + ("long",)))
    if kind == "none":
        return ""
    if kind == "long":
        return "&".join(f"a{n}=1" for n in range(1100))
    pairs = draw(
        st.lists(st.tuples(st.sampled_from(PARAMETERS), texts | numbers), min_size=1, max_size=3)
    )
    written = [
        f"{quote(name)}={quote(str(value).encode('utf-8', 'surrogatepass'))}"
        for name, value in pairs
    ]
    return "&".join(written) + draw(st.sampled_from(("", "&", "&&=", "%", "%zz", ";a=1")))


def _bad_bearers(key: str) -> tuple[str, ...]:
    return (
        *("Bearer", "Bearer ", "Basic eDp5", "bearer: x", key, f"Token {key}", ""),
        *(f"Bearer {key[:-1]}", f"Bearer {key}x", f"Bearer {key.upper()}", "Bearer \xff\xfe"),
        *(f"Bearer {key} {key}", f"Bearer,{key}", "Bearer " + "x" * 5000, "Bearer vk__"),
    )
