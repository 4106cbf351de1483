"""Property tests of the code that parses requests: JSON, fingerprints, pages, money, references."""

import copy
import json
import random
import unicodedata
from decimal import Decimal
from typing import Any

from django.test import RequestFactory
from rest_framework.request import Request

from catalogue.reference_format import is_reference
from core.api.errors import ValidationFailed
from core.api.json import parse_object
from core.api.pagination import MAX_PAGE, read_page
from core.json_output import dumps, money_text
from idempotency.services import fingerprint
from tests.answers import read_json
from tests.generating import example, given, st

TEXT = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\x00"))
SCALARS = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.decimals(allow_nan=False, allow_infinity=False)
    | TEXT
)
VALUES = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXT, inner, max_size=4)
)
OBJECTS = st.dictionaries(TEXT, VALUES, max_size=5)
QUERIES = st.dictionaries(TEXT, st.lists(TEXT, min_size=1, max_size=3), max_size=4)
JSON_LIKE = st.text(alphabet='{}[]":,0123456789eE+-.\\u truefalsn\x00\ud800', max_size=60)


def parsed(body: bytes) -> dict[str, Any] | None:
    """The object, or None when the body is refused. Any other exception fails the test."""
    try:
        return parse_object(body)
    except ValidationFailed as failed:
        causes = failed.extra["fields"]["body"]
    assert causes
    return None


@given(st.binary(max_size=200))
def test_any_bytes_are_parsed_or_refused(body: bytes) -> None:
    parsed(body)


@given(JSON_LIKE)
@example("1e" + "9" * 30)
@example('{"a":' * 500 + "1" + "}" * 500)
def test_any_json_like_text_is_parsed_or_refused(text: str) -> None:
    for body in (text, f'{{"a": {text}}}', f'{{"a": "{text}"}}'):
        found = parsed(body.encode("utf-8", "surrogatepass"))
        assert found is None or isinstance(found, dict)


@given(OBJECTS)
def test_any_json_object_is_parsed_exactly(value: dict[str, Any]) -> None:
    assert parse_object(to_json(value)) == value


def to_json(value: Any, **options: Any) -> bytes:
    """The value as JSON, with exact decimals."""
    marked = json.dumps(value, default=lambda number: f"\x00{number}\x00", **options)
    return marked.replace('"\\u0000', "").replace('\\u0000"', "").encode()


def shuffled(value: Any, order: random.Random) -> Any:
    """An equal value, with the members of every object in another order."""
    if isinstance(value, dict):
        names = list(value)
        order.shuffle(names)
        return {name: shuffled(value[name], order) for name in names}
    if isinstance(value, list):
        return [shuffled(member, order) for member in value]
    return value


def fingerprint_of(
    body: dict[str, Any], *, query: Any = (), endpoint: str = "POST /orders"
) -> bytes:
    return fingerprint(endpoint=endpoint, query=list(query), body=body)


@given(OBJECTS, st.randoms(use_true_random=False))
def test_whitespace_and_member_order_keep_the_fingerprint(
    value: dict[str, Any], order: random.Random
) -> None:
    other = shuffled(copy.deepcopy(value), order)
    plain, spaced = (
        parse_object(to_json(value)),
        parse_object(to_json(other, indent=3, separators=(" ,", " : "))),
    )
    assert fingerprint_of(plain) == fingerprint_of(spaced)


@given(OBJECTS, OBJECTS)
def test_other_content_has_another_fingerprint(one: dict[str, Any], other: dict[str, Any]) -> None:
    same = to_json(one, sort_keys=True) == to_json(other, sort_keys=True)
    assert (fingerprint_of(one) == fingerprint_of(other)) is same


@given(TEXT, st.integers(min_value=-1000, max_value=1000))
def test_values_of_different_types_have_different_fingerprints(name: str, number: int) -> None:
    decimal = Decimal(f"{number}.0")
    forms = [number, decimal, str(number), [number], {"decimal": str(decimal)}, None]
    assert len({fingerprint_of({name: form}) for form in forms}) == len(forms)


@given(QUERIES)
def test_query_and_endpoint_are_part_of_the_fingerprint(pairs: dict[str, list[str]]) -> None:
    query = list(pairs.items())
    assert (fingerprint_of({}, query=query) == fingerprint_of({})) is (query == [])
    assert fingerprint_of({}, query=query) == fingerprint_of({}, query=query[::-1])
    assert fingerprint_of({}, query=query) != fingerprint_of(
        {}, query=query, endpoint="POST /other"
    )


@given(st.text(max_size=30) | st.integers().map(str), st.text(max_size=30) | st.integers().map(str))
@example("9" * 5000, "-" + "9" * 5000)
@example("\u0663", "1_0")
def test_any_page_parameter_is_read_within_bounds(page: str, per_page: str) -> None:
    request = Request(RequestFactory().get("/", {"page": page, "per_page": per_page}))
    read = read_page(request, default_per_page=25)
    assert 1 <= read.page <= MAX_PAGE
    assert 1 <= read.per_page <= 100
    assert 0 <= read.offset < 2**63


@given(st.integers(min_value=-(10**20), max_value=10**20))
def test_money_is_rendered_exactly(ten_thousandths: int) -> None:
    amount = Decimal(ten_thousandths).scaleb(-4)
    text = money_text(amount)
    assert Decimal(text) == amount
    assert "e" not in text.lower()
    assert len(text.partition(".")[2]) >= 2
    assert read_json(dumps({"amount": amount})) == {"amount": amount}


@given(st.text(max_size=70))
def test_references_follow_the_contracts_format(text: str) -> None:
    kinds = [unicodedata.category(letter) for letter in text]
    letters = [kind.startswith("L") or kind == "Nd" for kind in kinds]
    expected = (
        1 <= len(text) <= 64
        and letters[0]
        and all(ok or letter in " ._-/:#" for ok, letter in zip(letters, text, strict=True))
    )
    assert is_reference(text) is expected
