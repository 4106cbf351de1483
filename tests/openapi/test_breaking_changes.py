"""The document breaks no client of the last release: clients were generated from that document.

Only what a client relies on is compared: operations, parameters, and the members, types, enums,
alternatives and required fields of each schema, and the limits of what a client sends. New optional
parameters and new descriptions break nothing.
"""

import copy
import subprocess
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import yaml

from embedded.environment import PROJECT
from tests.old_version import old_commit

Document = dict[str, Any]
# What may differ from the last release, with the reason. The next release empties it.
ACCEPTED: set[str] = set()
LIMITS = ("minimum", "maximum", "minLength", "maxLength", "maxProperties", "pattern")
METHODS = ("get", "post", "put", "patch", "delete")


def breaking_changes(old: Document, new: Document) -> list[str]:
    """One sentence for each change that breaks a client of the old document."""
    return [*_operations(old, new), *_schemas(old, new)]


def _operations(old: Document, new: Document) -> Iterator[str]:
    for path, methods in old["paths"].items():
        for method in METHODS & methods.keys():
            before, after = methods[method], new["paths"].get(path, {}).get(method)
            name = f"{method.upper()} {path}"
            if after is None:
                yield f"{name} is gone"
                continue
            if before["operationId"] != after["operationId"]:
                yield f"{name} has another operationId"
            yield from (f"{name}: {each}" for each in _parameters(before, after))
            for status in before["responses"].keys() - after["responses"].keys():
                yield f"{name} no longer documents {status}"
            for status, response in before["responses"].items():
                if _refs(response) != _refs(after["responses"].get(status, response)):
                    yield f"{name} has another schema for {status}"


def _parameters(before: Document, after: Document) -> Iterator[str]:
    old = {each["name"]: each for each in before.get("parameters", ())}
    new = {each["name"]: each for each in after.get("parameters", ())}
    for name in old.keys() - new.keys():
        yield f"parameter {name} is gone"
    for name, parameter in new.items():
        was_required = old.get(name, {}).get("required", False)
        if parameter.get("required") and not was_required:
            yield f"parameter {name} is required now"
        if name in old and old[name]["schema"].get("type") != parameter["schema"].get("type"):
            yield f"parameter {name} has another type"
        if name in old and _limits(old[name]["schema"]) != _limits(parameter["schema"]):
            yield f"parameter {name} has other limits"


def _refs(response: Document) -> Any:
    return response.get("content", {}).get("application/json", {}).get("schema")


def _schemas(old: Document, new: Document) -> Iterator[str]:
    for name, before in old["components"]["schemas"].items():
        after = new["components"]["schemas"].get(name)
        if after is None:
            yield f"schema {name} is gone"
            continue
        if before.get("type") != after.get("type"):
            yield f"{name} has another type"
        if set(before.get("enum", ())) != set(after.get("enum", ())):
            yield f"{name} has other values"
        if before.get("oneOf") != after.get("oneOf"):
            yield f"{name} has other alternatives"
        is_request = name.endswith("Request")
        old_required, new_required = set(before.get("required", ())), set(after.get("required", ()))
        for field in new_required - old_required if is_request else old_required - new_required:
            yield f"{name}.{field} is {'required now' if is_request else 'no longer required'}"
        for field, member in before.get("properties", {}).items():
            now = after.get("properties", {}).get(field)
            if now is None:
                yield f"{name}.{field} is gone"
            elif _kind(member) != _kind(now):
                yield f"{name}.{field} has another type"
            elif not is_request and now.get("nullable") and not member.get("nullable"):
                yield f"{name}.{field} may be null now"
            elif is_request and _limits(member) != _limits(now):
                yield f"{name}.{field} has other limits"


def _limits(member: Document) -> Any:
    return [member.get(each) for each in LIMITS]


def _kind(member: Document) -> Any:
    """The type of a member, without its limits and words. A reference in `allOf` is the same."""
    inner = member.get("allOf", [{}])[0]
    return member.get("type"), member.get("format"), member.get("$ref") or inner.get("$ref")


@pytest.fixture
def document() -> Document:
    loaded: Document = yaml.safe_load((PROJECT / "docs" / "openapi.yaml").read_text())
    return loaded


@pytest.mark.history
def test_nothing_breaks_a_client_of_the_last_release(document: Document) -> None:
    shown = subprocess.run(
        ["git", "show", f"{old_commit()}:docs/openapi.yaml"],
        cwd=PROJECT,
        check=True,
        capture_output=True,
        text=True,
    )
    assert set(breaking_changes(yaml.safe_load(shown.stdout), document)) <= ACCEPTED


def remove_operation(document: Document) -> None:
    del document["paths"]["/balance"]


def require_a_parameter(document: Document) -> None:
    document["paths"]["/products"]["get"]["parameters"][0]["required"] = True


def remove_a_member(document: Document) -> None:
    del document["components"]["schemas"]["Balance"]["properties"]["currency"]


def make_text_of_a_number(document: Document) -> None:
    document["components"]["schemas"]["Balance"]["properties"]["balance"]["type"] = "string"


def allow_null(document: Document) -> None:
    document["components"]["schemas"]["Balance"]["properties"]["balance"]["nullable"] = True


def add_a_code(document: Document) -> None:
    document["components"]["schemas"]["CodeEnum"]["enum"].append("too_tired")


def buy_fewer(document: Document) -> None:
    purchase = document["components"]["schemas"]["VoucherPurchaseByProductRequest"]
    purchase["properties"]["quantity"]["maximum"] = 10


def shorten_the_key(document: Document) -> None:
    document["paths"]["/orders"]["post"]["parameters"][0]["schema"]["maxLength"] = 36


def buy_no_topups(document: Document) -> None:
    document["components"]["schemas"]["PurchaseRequest"]["oneOf"].pop()


def require_a_field(document: Document) -> None:
    document["components"]["schemas"]["TopUpPurchaseRequest"]["required"].append("quantity")


@pytest.mark.parametrize(
    ("change", "found"),
    [
        (remove_operation, "GET /balance is gone"),
        (require_a_parameter, "GET /products: parameter in_stock is required now"),
        (remove_a_member, "Balance.currency is gone"),
        (make_text_of_a_number, "Balance.balance has another type"),
        (allow_null, "Balance.balance may be null now"),
        (add_a_code, "CodeEnum has other values"),
        (buy_fewer, "VoucherPurchaseByProductRequest.quantity has other limits"),
        (shorten_the_key, "POST /orders: parameter Idempotency-Key has other limits"),
        (buy_no_topups, "PurchaseRequest has other alternatives"),
        (require_a_field, "TopUpPurchaseRequest.quantity is required now"),
    ],
)
def test_a_breaking_change_is_found(
    document: Document, change: Callable[[Document], None], found: str
) -> None:
    changed = copy.deepcopy(document)
    change(changed)
    assert breaking_changes(document, changed) == [found]


def test_a_new_optional_parameter_breaks_nothing(document: Document) -> None:
    changed = copy.deepcopy(document)
    changed["paths"]["/balance"]["get"]["parameters"] = [
        {"in": "query", "name": "new", "schema": {"type": "string"}}
    ]
    assert breaking_changes(document, changed) == []
