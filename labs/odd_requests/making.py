"""Makes request number N of a seed, and says which answers it may get.

The order of the service's checks decides which answer is due (docs/architecture.md, "A purchase"):
route and size, key, `Idempotency-Key`, body, and only then what is in the database.
"""

import json
import random
from dataclasses import dataclass, field, replace
from typing import Any
from urllib.parse import quote

from labs.odd_requests import values
from labs.odd_requests.rules import storable, well_formed
from labs.odd_requests.world import Bought, World

BASE = "/api/v1"
LISTS = ("/products", "/topup-products", "/orders")
DETAILS = ("/products/{}", "/topup-products/{}")
METHODS = ("PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "POST", "BREW", "X" * 40)
MAX_BODY = 128 * 1024
MAX_PARAMETERS = 1000  # of a query; Django refuses more
# What a well-formed purchase may get, beside the order.
REFUSED_PURCHASE = {
    *("order_refused", "validation_failed", "variation_mismatch"),
    *("product_reference_not_found", "product_reference_ambiguous"),
}
MALFORMED = {"validation_failed", "product_reference_ambiguous"}


@dataclass(frozen=True)
class Odd:
    """A request, and the answers that it may get: error codes, `200`, `201`, or `message` for a
    body with only a message. `of` is the purchase that it repeats."""

    number: int
    method: str
    path: str  # with percent signs
    query: str = ""
    headers: tuple[tuple[str, str], ...] = ()
    body: bytes = b""
    expected: frozenset[str] = frozenset()
    of: Bought | None = field(default=None, repr=False)
    replays: bool = False


class Maker:
    """Makes requests for a world. A seed makes the same ones if the answers are the same."""

    def __init__(self, world: World, seed: int) -> None:
        self._world = world
        self._seed = seed

    def make(self, number: int) -> Odd:
        chance = random.Random(self._seed * 1_000_003 + number)
        pick = chance.random()
        if pick < 0.10 and self._world.bought:
            return self._again(number, chance)
        if pick < 0.60:
            odd = self._purchase(number, chance)
        elif pick < 0.90:
            odd = self._read(number, chance)
        else:
            odd = self._astray(number, chance)
        return self._with_caller(odd, chance)

    def _purchase(self, number: int, chance: random.Random) -> Odd:
        body = self._good_body(chance)
        changes = chance.choice((0, 0, 1, 1, 1, 2, 3))
        for _ in range(changes):
            _change(chance, body)
        text = json.dumps(body, ensure_ascii=chance.random() < 0.5)
        read = json.loads(text)  # two halves of a surrogate pair side by side are one character
        good = well_formed(read) and storable(read)
        content = text.encode("utf-8", "surrogatepass")
        pick = chance.random()
        if pick < 0.15:
            content, good = values.broken(chance, json.dumps(self._good_body(chance))), False
        elif pick < 0.20 and "quantity" in body:
            raw = chance.choice(values.RAW_NUMBERS)
            content, good = (
                json.dumps({**body, "quantity": "@"}).replace('"@"', raw).encode(),
                False,
            )
        elif pick < 0.202:
            content, good = content[:-1] + b" " * MAX_BODY + b"}", False
        expected = {"201", *REFUSED_PURCHASE} if good else MALFORMED
        odd = Odd(number, "POST", f"{BASE}/orders", body=content, expected=frozenset(expected))
        odd = self._with_type(self._with_key(odd, chance), chance)
        if chance.random() < 0.05:
            query = _query(chance)
            refused = {"message"} if query.count("&") > MAX_PARAMETERS else set()
            odd = replace(odd, query=query, expected=odd.expected | refused)
        return odd

    def _good_body(self, chance: random.Random) -> dict[str, Any]:
        world, pick = self._world, chance.random()
        if pick < 0.35:
            product, fields = chance.choice(world.topups)
            body = {
                "delivery_type": "top_up",
                "system_product_id": product,
                "player_id": f"00{chance.randrange(10**6)}",
            }
            return {**body, "fields": dict(fields)} if fields else body
        body = {"quantity": chance.choice((1, 1, 1, 2, 3))}
        if pick < 0.75:
            return {"product_id": chance.choice(world.products), **body}
        if pick < 0.9:
            product, variation = chance.choice(world.variations)
            return {"product_id": product, "variation_id": variation, **body}
        return {"merchant_reference": chance.choice(world.references), **body}

    def _with_key(self, odd: Odd, chance: random.Random) -> Odd:
        """Mostly a new key; now and then an odd one, which decides the answer."""
        pick = chance.random()
        expected = odd.expected
        if pick < 0.85:
            key: str | None = f"{self._seed}-{odd.number}"
        elif pick < 0.87:
            key, expected = None, frozenset({"idempotency_key_required"})
        elif pick < 0.89:
            key, expected = chance.choice(("", " ", "\t")), frozenset({"idempotency_key_required"})
        elif pick < 0.91:
            key = "k" * chance.choice((129, 200, 4000))
            expected = frozenset({"idempotency_key_too_long"})
        elif pick < 0.93:
            key = f"{odd.number}" + chance.choice(("é", "\xa0", "\x7f", "a\tb", "\xff"))
            # The web server empties a header with other bytes than ASCII.
            emptied = () if key.isascii() else ("idempotency_key_required",)
            expected = frozenset({"validation_failed", *emptied})
        elif pick < 0.97:
            key = f"{self._seed}-{odd.number}".rjust(128, chance.choice("~!{ "))[-128:].strip()
        else:  # a key that is in use: the content decides
            if not self._world.bought:
                return self._with_headers(odd, ("Idempotency-Key", f"{self._seed}-{odd.number}"))
            key = chance.choice(self._world.bought).key
            expected = expected | {"idempotency_key_reused"}
        if key is None:
            return replace(odd, expected=expected)
        return self._with_headers(replace(odd, expected=expected), ("Idempotency-Key", key))

    def _with_type(self, odd: Odd, chance: random.Random) -> Odd:
        if chance.random() < 0.93:
            kind = chance.choice(("application/json", "application/json", "Application/JSON; x=y"))
            return self._with_headers(odd, ("Content-Type", kind))
        kind = chance.choice(
            (
                *("text/plain", "application/x-www-form-urlencoded", "text/json", "json", "", "/"),
                *("multipart/form-data; boundary=x", "application/jsonx", "application/xml"),
            )
        )
        keyed = {"idempotency_key_required", "idempotency_key_too_long"} & odd.expected
        expected = odd.expected if keyed else frozenset({"validation_failed"})
        return self._with_headers(replace(odd, expected=expected), ("Content-Type", kind))

    def _with_caller(self, odd: Odd, chance: random.Random) -> Odd:
        """Adds a key of the API, mostly a good one. Another one decides the answer."""
        if "message" in odd.expected and len(odd.expected) == 1:
            good = f"Bearer {chance.choice(self._world.buyers)}"
            return self._with_headers(odd, ("Authorization", good))
        if len(odd.body) > MAX_BODY:
            odd = replace(odd, expected=frozenset({"message"}))
        pick, world = chance.random(), self._world
        expected = odd.expected
        header: str | None
        if pick < 0.80:
            header = f"Bearer {chance.choice(world.buyers)}"
        elif pick < 0.88:
            header = f"Bearer {chance.choice(world.poor)}"
            expected = expected | {"client_without_wallet"}
        elif pick < 0.91:
            key, code = chance.choice(list(world.refused.items()))
            header, expected = f"Bearer {key}", _unless_early(expected, code)
        elif pick < 0.94:
            header, expected = None, _unless_early(expected, "missing_token")
        else:
            header, expected = _bad_bearer(chance, world), _unless_early(expected, "invalid_token")
        odd = replace(odd, expected=expected)
        return odd if header is None else self._with_headers(odd, ("Authorization", header))

    def _again(self, number: int, chance: random.Random) -> Odd:
        """A replay, or the same key with other content, or the same content with another key."""
        of = chance.choice(self._world.bought)
        body, query, key, expected = of.body, of.query, of.key, {"201"}
        pick = chance.random()
        if pick < 0.2:
            body, expected = of.body[:-1] + b', "variation_id": 7}', {"idempotency_key_reused"}
            expected |= MALFORMED
        elif pick < 0.3:
            query, expected = f"{of.query}&again=1", {"idempotency_key_reused"}
        elif pick < 0.4:
            body = json.dumps(json.loads(of.body), indent=2).encode()  # the same content
        elif pick < 0.45:
            key, expected = f"again-{self._seed}-{number}", {"201", *REFUSED_PURCHASE}
        headers = (
            ("Authorization", of.bearer),
            ("Content-Type", "application/json"),
            ("Idempotency-Key", key),
        )
        replays = expected == {"201"}
        path = f"{BASE}/orders"
        return Odd(number, "POST", path, query, headers, body, frozenset(expected), of, replays)

    def _read(self, number: int, chance: random.Random) -> Odd:
        pick = chance.random()
        query = _query(chance)
        if pick < 0.45:
            path, expected = chance.choice(LISTS), {"200"}
            if query.count("&") > MAX_PARAMETERS:
                expected = {"message"}
        elif pick < 0.65:
            part = chance.choice(
                (str(chance.choice(self._world.products)), str(chance.choice(values.NUMBERS)))
            )
            path = chance.choice(DETAILS).format(quote(part, safe=""))
            expected = {"200", "product_not_found"} if part.isdigit() else {"message"}
        elif pick < 0.85:
            path, expected = self._order(chance)
        else:
            path = chance.choice(("/ping", "/balance"))
            expected = {"200"}
        method = "HEAD" if chance.random() < 0.05 else "GET"
        body = chance.choice((b"", b"", b"{}", b"\xff" * 10))
        return Odd(number, method, BASE + path, query, (), body, expected=frozenset(expected))

    def _order(self, chance: random.Random) -> tuple[str, set[str]]:
        if self._world.bought and chance.random() < 0.4:
            return f"/orders/{chance.choice(self._world.bought).reference}", {
                "200",
                "order_not_found",
            }
        part = values.text(chance).encode("utf-8", "surrogatepass")
        path = f"/orders/{quote(part, safe='')}"
        astray = not part or b"/" in part
        return path, {"message"} if astray else {"order_not_found", "message"}

    def _astray(self, number: int, chance: random.Random) -> Odd:
        """An unknown path, or a method that the path does not know."""
        if chance.random() < 0.5:
            method = chance.choice(METHODS)
            path = chance.choice(("/ping", "/balance", "/products", "/orders", "/products/1"))
            if (method, path) == ("POST", "/orders"):
                method = "DELETE"
        else:
            method = chance.choice(("GET", "POST"))
            odd = quote(values.text(chance).encode("utf-8", "surrogatepass"), safe="/")
            path = f"/nothing/{odd}"
        body = chance.choice((b"", b"{}", b"x" * 1000))
        return Odd(number, method, BASE + path, _query(chance), (), body, frozenset({"message"}))

    @staticmethod
    def _with_headers(odd: Odd, *headers: tuple[str, str]) -> Odd:
        return replace(odd, headers=(*odd.headers, *headers))


def _unless_early(expected: frozenset[str], code: str) -> frozenset[str]:
    return expected if expected == {"message"} else frozenset({code} | (expected & {"message"}))


def _bad_bearer(chance: random.Random, world: World) -> str:
    key = chance.choice(world.buyers)
    return chance.choice(
        (
            *("Bearer", "Bearer ", "Basic eDp5", "bearer: x", key, f"Token {key}", ""),
            *(f"Bearer {key[:-1]}", f"Bearer {key}x", f"Bearer {key.upper()}", "Bearer \xff\xfe"),
            *(f"Bearer {key} {key}", f"Bearer,{key}", "Bearer " + "x" * 5000, "Bearer vk__"),
        )
    )


def _change(chance: random.Random, body: dict[str, Any]) -> None:
    """One odd change of a purchase body."""
    names = list(body) or ["quantity"]
    pick = chance.random()
    if pick < 0.45:
        body[chance.choice(names)] = values.value(chance)
    elif pick < 0.6:
        body.pop(chance.choice(names), None)
    elif pick < 0.75:
        known = ("product_id", "merchant_reference", "variation_id", "quantity", "delivery_type")
        more = ("system_product_id", "player_id", "fields")
        body[chance.choice((*known, *more))] = values.value(chance)
    elif pick < 0.85:
        body[values.text(chance)] = values.value(chance)
    elif pick < 0.95:
        body["fields"] = {
            chance.choice((str(number), values.text(chance))): values.text(chance)
            for number in range(chance.choice((1, 2, 30, 31)))
        }
    else:
        body["quantity"] = chance.choice((0, 1, 50, 100, 101, 3, 4))


def _query(chance: random.Random) -> str:
    pick = chance.random()
    if pick < 0.4:
        return ""
    if pick < 0.402:
        return "&".join(f"a{n}=1" for n in range(1100))
    names = ("page", "per_page", "search", "in_stock", "odd", "", "page[]", "pa\x00ge")
    pairs = []
    for _ in range(chance.choice((1, 1, 2, 3))):
        said: object = chance.choice((values.text(chance), chance.choice(values.NUMBERS)))
        raw = str(said).encode("utf-8", "surrogatepass")
        pairs.append(f"{quote(chance.choice(names))}={quote(raw)}")
    return "&".join(pairs) + chance.choice(("", "", "&", "&&=", "%", "%zz", ";a=1"))
