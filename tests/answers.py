"""Checks every API answer that a test receives against the served OpenAPI document.

`Merchant` and the `client` fixture use `CheckedClient`, which checks by itself.
`tests.live.LiveHttp` does the same over a real network.
"""

import json
import re
from collections.abc import Iterable, Mapping
from decimal import Decimal
from functools import cache
from http.client import HTTPMessage
from typing import Any, NoReturn

from django.test import Client
from openapi_schema_validator import OAS30Validator, oas30_format_checker
from referencing import Registry
from referencing.jsonschema import DRAFT4

DOCUMENT_PATH = "/api/v1/openapi.json"
TOKEN = re.compile('name="csrfmiddlewaretoken" value="[^"]+"')
# What may be answered before a request reaches the API, even at a path and method of the API. (The
# document also has 403 for plain HTTP and 404 for other ids; checked answers need no such message.)
EARLY_STATUSES = {400, 413}
# What `strict_document` adds to the members of a component.
ONE = {"maximum": 1}
STRICT_RULES = {
    "TopUpOrder": {"quantity": ONE, "units": ONE, "units_per_sale": ONE, "codes": {"maxItems": 0}},
    "TopUpProduct": {"quantity_step": ONE, "max_quantity": ONE},
}


Headers = Mapping[str, str] | HTTPMessage


class WrongAnswer(AssertionError):
    """The answer differs from the OpenAPI document."""


def check_answer(method: str, path: str, *, status: int, headers: Headers, body: bytes) -> None:
    """Raises WrongAnswer unless the answer is as documented. Ignores paths outside the API."""
    if not path.startswith("/api/") or path == DOCUMENT_PATH:
        return
    where = f"{method} {path} -> {status}"
    _check_headers(where, headers)
    if method == "HEAD":
        method, body = "GET", body or b"null"
    value = read_json(body, where)
    if method == "GET" and value is None:
        return  # HEAD: headers only
    operation = _operation(method, path)
    if isinstance(value, dict) and set(value) == {"message"}:
        _check_message(where, status, value["message"], operation)
    elif operation is None:
        raise WrongAnswer(f"{where}: not documented, so only a message is allowed: {value}")
    else:
        _check_body(where, operation, status, value)
        if "Idempotent-Replay" in headers and (status, headers["Idempotent-Replay"]) != (
            201,
            "true",
        ):
            raise WrongAnswer(f"{where}: Idempotent-Replay where nothing was replayed")


def read_json(body: bytes, where: str = "body") -> Any:
    """Parses JSON strictly, with amounts as decimals. Refuses constants and repeated names."""
    try:
        return json.loads(
            body.decode("utf-8"),
            parse_float=Decimal,
            parse_constant=_refuse,
            object_pairs_hook=_unique,
        )
    except ValueError as error:
        raise WrongAnswer(f"{where}: {error}: {body[:200]!r}") from None


def without_random_values(answer: Any) -> str:
    """The page without the id of its request and the tokens of its forms, new each time."""
    page: str = answer.content.decode().replace(answer["X-Request-Id"], "")
    return TOKEN.sub("", page)


class CheckedClient(Client):
    """Django's test client. It checks each API answer before the test sees it."""

    def request(self, **request: Any) -> Any:
        response = super().request(**request)
        path = str(request["PATH_INFO"])
        check_answer(
            request["REQUEST_METHOD"],
            path,
            status=response.status_code,
            headers=response.headers,
            body=b"" if response.streaming else response.content,
        )
        return response


@cache
def served_document() -> dict[str, Any]:
    """The OpenAPI document that the service serves."""
    response = Client().get(DOCUMENT_PATH)
    assert response.status_code == 200, response.content
    document: dict[str, Any] = response.json()
    return document


def operations(document: dict[str, Any]) -> Iterable[tuple[str, str, dict[str, Any]]]:
    """Yields each operation as (method, path below the version prefix, operation)."""
    for path, item in document["paths"].items():
        for method, operation in item.items():
            yield method.upper(), path, operation


def documented_codes(operation: dict[str, Any], status: int) -> set[str]:
    """The error codes that the operation may answer with for this status."""
    content = operation["responses"][str(status)]["content"]["application/json"]
    return {
        example["value"]["error"]["code"]
        for example in content.get("examples", {}).values()
        if "error" in example["value"]
    }


def _check_headers(where: str, headers: Headers) -> None:
    if headers.get("Content-Type") != "application/json":
        raise WrongAnswer(f"{where}: Content-Type is {headers.get('Content-Type')}")
    if not re.fullmatch(r"[0-9a-f-]{36}", headers.get("X-Request-Id") or ""):
        raise WrongAnswer(f"{where}: no X-Request-Id")
    if "Retry-After" in headers:
        raise WrongAnswer(f"{where}: a Retry-After header")


def _check_message(where: str, status: int, message: Any, operation: dict[str, Any] | None) -> None:
    if not (isinstance(message, str) and message):
        raise WrongAnswer(f"{where}: the message is {message!r}")
    if status not in (EARLY_STATUSES if operation else EARLY_STATUSES | {404, 405}):
        raise WrongAnswer(f"{where}: a documented request is answered with {message!r}")
    if operation and status == 400 and not allows_message(operation, status):
        raise WrongAnswer(f"{where}: the document has no message with this status")


def allows_message(operation: dict[str, Any], status: int) -> bool:
    """Whether the document says that this status may have a `{message}` body."""
    content = operation["responses"][str(status)]["content"]["application/json"]
    return str(content["schema"].get("$ref")).endswith(("/Message", "/FailureOrMessage"))


def _check_body(where: str, operation: dict[str, Any], status: int, value: Any) -> None:
    if str(status) not in operation["responses"]:
        raise WrongAnswer(f"{where}: undocumented status: {value}")
    errors = list(_validator(operation["operationId"], status).iter_errors(value))
    if errors:
        raise WrongAnswer(f"{where}: " + "; ".join(str(error) for error in errors))
    if status >= 400 and value["error"]["code"] not in documented_codes(operation, status):
        raise WrongAnswer(f"{where}: undocumented error code {value['error']['code']}")


@cache
def _routes() -> list[tuple[re.Pattern[str], dict[str, Any]]]:
    document = strict_document()
    base = re.escape(document["servers"][0]["url"])
    return [
        (re.compile(base + _path_pattern(path, item)), item)
        for path, item in document["paths"].items()
    ]


def _path_pattern(path: str, item: dict[str, Any]) -> str:
    """A pattern for the path. An integer parameter matches only digits."""
    parameters = {
        parameter["name"]: "[0-9]+" if parameter["schema"]["type"] == "integer" else "[^/]+"
        for operation in item.values()
        for parameter in operation.get("parameters", ())
        if parameter["in"] == "path"
    }
    return re.sub(r"\{(\w+)\}", lambda name: parameters[name[1]], path)


def _operation(method: str, path: str) -> dict[str, Any] | None:
    for pattern, item in _routes():
        if pattern.fullmatch(path):
            operation: dict[str, Any] | None = item.get(method.lower())
            return operation
    return None


@cache
def strict_document() -> dict[str, Any]:
    """The document with the rules that it leaves out because generators of clients misread them.

    Members that it does not name are errors. A top-up is always one, and has no codes. A nullable
    reference allows null, which the enum behind it does not.
    """
    document: dict[str, Any] = json.loads(json.dumps(served_document()), object_hook=_allow_null)
    for schema in document["components"]["schemas"].values():
        if "properties" in schema:
            schema.setdefault("additionalProperties", False)
    for component, rules in STRICT_RULES.items():
        for member, rule in rules.items():
            document["components"]["schemas"][component]["properties"][member] |= rule
    return document


def _allow_null(schema: dict[str, Any]) -> dict[str, Any]:
    if schema.get("nullable") and "allOf" in schema:
        schema["anyOf"] = [{"allOf": schema.pop("allOf")}, {"enum": [None]}]
    return schema


@cache
def _validator(operation_id: str, status: int) -> OAS30Validator:
    document = strict_document()
    by_id = {operation["operationId"]: operation for _, _, operation in operations(document)}
    operation = by_id[operation_id]
    schema = operation["responses"][str(status)]["content"]["application/json"]["schema"]
    registry = Registry().with_resource("urn:document", DRAFT4.create_resource(document))
    absolute = json.loads(json.dumps(schema).replace('"#/', '"urn:document#/'))
    return OAS30Validator(absolute, registry=registry, format_checker=oas30_format_checker)


def _refuse(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is not JSON")


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) != len(pairs):
        raise ValueError("a name appears twice")
    return members
