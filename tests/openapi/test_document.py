"""The OpenAPI document is valid, complete and equal to docs/openapi.yaml."""

import json
import re
from collections.abc import Iterator
from typing import Any

import pytest
import yaml
from openapi_schema_validator import OAS30Validator
from openapi_spec_validator import OpenAPIV30SpecValidator, validate
from referencing import Registry
from referencing.jsonschema import DRAFT4

from catalogue.reference_format import is_reference
from embedded.environment import PROJECT
from merchants.docs.api_reference import limit
from orders.examples import TOP_UP_ORDER
from tests.answers import (
    CheckedClient,
    allows_message,
    operations,
    served_document,
    strict_document,
)
from tests.contract.rows import ERROR_CODES, REASONS

BY_PRODUCT, BY_REFERENCE = "VoucherPurchaseByProductRequest", "VoucherPurchaseByReferenceRequest"


def test_the_document_is_valid_openapi_3_0_3_of_version_1_1_0() -> None:
    document = served_document()
    validate(document, cls=OpenAPIV30SpecValidator)
    assert (document["openapi"], document["info"]["version"]) == ("3.0.3", "1.1.0")
    assert document["servers"] == [{"url": "/api/v1"}]


def test_docs_openapi_yaml_is_the_served_document() -> None:
    """`make openapi` writes it."""
    assert yaml.safe_load((PROJECT / "docs" / "openapi.yaml").read_text()) == served_document()


def test_every_operation_requires_the_bearer_key() -> None:
    document = served_document()
    schemes = document["components"]["securitySchemes"]
    assert schemes == {"bearerAuth": {"type": "http", "scheme": "bearer"}}
    for _, path, operation in operations(document):
        assert operation["security"] == [{"bearerAuth": []}], path


def test_every_operation_parameter_and_response_is_described() -> None:
    document = served_document()
    tags = {tag["name"] for tag in document["tags"] if tag["description"]}
    for _, path, operation in operations(document):
        assert operation["description"], path
        assert set(operation["tags"]) <= tags, path
        for parameter in operation.get("parameters", ()):
            assert parameter.get("description"), (path, parameter["name"])
        for status, response in operation["responses"].items():
            assert response["description"], (path, status)


def test_no_description_mentions_the_contract() -> None:
    for schema in served_document()["components"]["schemas"].values():
        assert "Contract" not in schema.get("description", "")


def test_the_purchase_documents_its_key_and_body() -> None:
    post = served_document()["paths"]["/orders"]["post"]
    (key,) = [each for each in post["parameters"] if each["in"] == "header"]
    assert (key["name"], key["required"]) == ("Idempotency-Key", True)
    assert (key["schema"]["minLength"], key["schema"]["maxLength"]) == (1, 128)
    assert re.fullmatch(key["schema"]["pattern"], "3f1c 9")
    assert not re.fullmatch(key["schema"]["pattern"], " ")
    assert post["requestBody"]["required"] is True
    assert "Idempotent-Replay" in post["responses"]["201"]["headers"]
    link = post["responses"]["201"]["links"]["ReadOrder"]  # schemathesis follows it
    assert link["operationId"] == "get_order"
    assert link["parameters"] == {"reference": "$response.body#/data/reference"}
    assert set(post["responses"]["413"]["content"]) == {"application/json"}


@pytest.mark.parametrize("body", [BY_PRODUCT, BY_REFERENCE, "TopUpPurchaseRequest"])
def test_a_purchase_body_allows_no_unknown_field(body: str) -> None:
    assert served_document()["components"]["schemas"][body]["additionalProperties"] is False


def test_the_limits_of_the_quantity_are_documented() -> None:
    for name, product in ((BY_PRODUCT, "product_id"), (BY_REFERENCE, "merchant_reference")):
        voucher = served_document()["components"]["schemas"][name]
        quantity = voucher["properties"]["quantity"]
        assert (quantity["minimum"], quantity["maximum"]) == (1, 100)
        assert set(voucher["required"]) == {product, "quantity"}


def test_javascript_keeps_every_integer_that_the_document_allows() -> None:
    largest = [schema["maximum"] for _, schema in _schemas() if "maximum" in schema]
    assert max(largest) == 2**53 - 1


def test_the_two_kinds_of_order_are_told_apart_by_their_fields() -> None:
    schemas = served_document()["components"]["schemas"]
    voucher, topup = schemas["VoucherOrder"], schemas["TopUpOrder"]
    assert "delivery_type" in topup["required"]
    assert "delivery_type" not in voucher["properties"]
    assert "product_id" in voucher["required"]
    assert "product_id" not in topup["properties"]
    assert "delivery_type" in schemas["Order"]["description"]


def _schemas() -> Iterator[tuple[str, dict[str, Any]]]:
    """Every schema of the document, with where it is."""
    waiting: list[tuple[str, Any]] = [("document", served_document())]
    while waiting:
        where, value = waiting.pop()
        inside = value.items() if isinstance(value, dict) else enumerate(value)
        waiting += [
            (f"{where}.{name}", each) for name, each in inside if isinstance(each, dict | list)
        ]
        if isinstance(value, dict) and ".examples." not in where:
            yield where, value


def test_every_property_is_described() -> None:
    for name, schema in served_document()["components"]["schemas"].items():
        assert schema.get("description") or "enum" in schema or "oneOf" in schema, name
        for member, rules in schema.get("properties", {}).items():
            description = rules.get("description", "")
            assert re.fullmatch(r"[A-Z`].+\.", description, re.DOTALL), (name, member, description)


def test_no_rule_stands_next_to_a_reference_and_no_null_without_a_type() -> None:
    """OpenAPI 3.0 ignores what stands next to `$ref`, and `nullable` without a type."""
    for where, schema in _schemas():
        assert "$ref" not in schema or set(schema) == {"$ref"}, where
        assert "nullable" not in schema or "type" in schema, where


def test_the_document_has_no_shape_that_generators_of_clients_misread() -> None:
    """One refuses the document, three write code that does not compile, and one refuses vouchers.

    PHP's generator gives an order of vouchers the limits of a top-up order too.
    """
    assert "://" in served_document()["info"]["contact"].get("url", "://")
    for where, schema in _schemas():
        assert "enum" not in schema or "type" in schema, where
        assert None not in schema.get("enum", ()) or schema["nullable"], where
        assert schema.get("maxItems") != 0, where
    for name in ("TopUpOrder", "TopUpProduct"):
        for member, rules in served_document()["components"]["schemas"][name]["properties"].items():
            assert "maximum" not in rules, (name, member)


@pytest.mark.parametrize(
    ("owner", "member", "enum"),
    [
        ("TopUpOrder", "failure_reason", "FailureReasonEnum"),
        ("Product", "type", "ProductTypeEnum"),
        ("Error", "reason", "ReasonEnum"),
    ],
)
def test_an_enum_that_may_be_null_is_a_nullable_string(owner: str, member: str, enum: str) -> None:
    rules = dict(served_document()["components"]["schemas"][owner]["properties"][member])
    assert rules.pop("description")
    reference = {"$ref": f"#/components/schemas/{enum}"}
    assert rules == {"type": "string", "nullable": True, "allOf": [reference]}
    assert None in served_document()["components"]["schemas"][enum]["enum"]


def test_every_component_is_used() -> None:
    text = json.dumps(served_document())
    for kind in ("schemas", "headers"):
        for name in served_document()["components"][kind]:
            assert f'"#/components/{kind}/{name}"' in text, name


def test_yaml_of_every_version_reads_strings_as_strings() -> None:
    """PyYAML writes YAML 1.1, where 0012345678 is a string; in YAML 1.2 it is a number."""
    other_than_text = re.compile(
        r"[-+]?[0-9]+|0o[0-7]+|0x[0-9a-fA-F]+|[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?"
        r"|[-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN)|true|True|TRUE|false|False|FALSE|null|Null|NULL|~|"
    )
    checked = 0
    for event in yaml.parse((PROJECT / "docs" / "openapi.yaml").read_text()):
        if isinstance(event, yaml.ScalarEvent) and event.style is None:
            is_text = isinstance(yaml.safe_load(event.value), str)
            assert not (is_text and other_than_text.fullmatch(event.value)), event.value
            checked += 1
    assert checked > 1000


def test_every_response_has_a_request_id() -> None:
    for _, path, operation in operations(served_document()):
        for status, response in operation["responses"].items():
            assert "X-Request-Id" in response["headers"], (path, status)


def test_every_operation_documents_what_is_rejected_before_the_api() -> None:
    for method, path, operation in operations(served_document()):
        for status in (400, 403, 405):
            assert allows_message(operation, status), (method, path, status)
        assert (method == "POST") == ("413" in operation["responses"])


def test_the_document_names_contact_and_licence() -> None:
    info = served_document()["info"]
    assert info["contact"]["name"]
    assert "MIT License" in (PROJECT / "LICENSE").read_text()
    assert info["license"]["name"] == "MIT"


def _is_valid(component: str, value: Any) -> bool:
    resource = DRAFT4.create_resource(strict_document())
    registry: Registry[Any] = Registry().with_resource("urn:document", resource)
    reference = {"$ref": f"urn:document#/components/schemas/{component}"}
    return bool(OAS30Validator(reference, registry=registry).is_valid(value))


@pytest.mark.parametrize(
    ("body", "valid"),
    [
        ({"product_id": 1, "quantity": 1}, True),
        ({"merchant_reference": "mine", "quantity": 1}, True),
        ({"merchant_reference": "mine", "variation_id": None, "quantity": 1}, True),
        ({"quantity": 1}, False),
        ({"product_id": 1, "merchant_reference": "mine", "quantity": 1}, False),
        ({"merchant_reference": "a" * 65, "quantity": 1}, False),
        ({"merchant_reference": "", "quantity": 1}, False),
    ],
)
def test_a_voucher_purchase_names_its_product_once(body: dict[str, Any], valid: bool) -> None:
    assert (_is_valid(BY_PRODUCT, body) or _is_valid(BY_REFERENCE, body)) is valid
    assert _is_valid("PurchaseRequest", body) is valid


def test_the_pattern_of_references_allows_what_the_service_allows() -> None:
    """For ASCII it is exact. Other characters need Unicode classes, which dialects name apart."""
    body = served_document()["components"]["schemas"][BY_REFERENCE]
    pattern = re.compile(body["properties"]["merchant_reference"]["pattern"])
    for character in map(chr, range(0x11000)):
        for text in (character, f"a{character}"):
            if text.endswith("\n"):
                continue  # Python's $ also matches before a final newline
            if character.isascii():
                assert bool(pattern.search(text)) is is_reference(text), text
            else:
                assert pattern.search(text) or not is_reference(text), text


def test_a_top_up_purchase_has_at_most_thirty_fields() -> None:
    body = {"delivery_type": "top_up", "system_product_id": 1, "player_id": "007"}
    for number, valid in ((30, True), (31, False)):
        fields = {str(each): "x" for each in range(number)}
        assert _is_valid("TopUpPurchaseRequest", {**body, "fields": fields}) is valid
    product = served_document()["components"]["schemas"]["TopUpProduct"]
    assert product["properties"]["fields"]["maxItems"] == 30


@pytest.mark.parametrize(
    "change",
    [
        {"quantity": 2},
        {"units": 2},
        {"units_per_sale": 2},
        {"delivery_type": "voucher"},
        {"codes": [{"code": "A"}]},
        {"failure_reason": ""},
        {"failure_reason": "other"},
    ],
)
def test_the_constants_of_a_top_up_order_are_checked(change: dict[str, Any]) -> None:
    assert _is_valid("TopUpOrder", {**TOP_UP_ORDER, "failure_reason": None})
    assert _is_valid("TopUpOrder", {**TOP_UP_ORDER, "failure_reason": "wrong_id"})
    assert not _is_valid("TopUpOrder", {**TOP_UP_ORDER, **change})


def test_error_codes_and_reasons_are_enums() -> None:
    enums = [
        set(schema["enum"])
        for schema in served_document()["components"]["schemas"].values()
        if "enum" in schema
    ]
    assert set(ERROR_CODES) in enums
    assert {*REASONS, None} in enums


def _examples() -> Iterator[tuple[str, dict[str, Any], Any]]:
    for method, path, operation in operations(served_document()):
        bodies = {**operation["responses"], "request": operation.get("requestBody", {})}
        for status, body in bodies.items():
            media = body.get("content", {}).get("application/json", {})
            for name, example in media.get("examples", {}).items():
                yield f"{method} {path} {status} {name}", media["schema"], example["value"]


def test_every_example_matches_its_schema() -> None:
    resource = DRAFT4.create_resource(strict_document())
    registry: Registry[Any] = Registry().with_resource("urn:document", resource)
    names = []
    for name, schema, value in _examples():
        absolute = _absolute(schema)
        assert OAS30Validator(absolute, registry=registry).is_valid(value), name
        names.append(name)
    assert len([name for name in names if name.startswith("POST /orders request")]) == 3
    assert len([name for name in names if name.startswith("POST /orders 201")]) == 2


def test_every_success_has_an_example() -> None:
    for method, path, operation in operations(served_document()):
        (success,) = (status for status in operation["responses"] if status.startswith("2"))
        content = operation["responses"][success]["content"]["application/json"]
        assert content["examples"], (method, path)


def _absolute(schema: Any) -> Any:
    if isinstance(schema, dict):
        return {name: _absolute(value) for name, value in schema.items()}
    if isinstance(schema, str) and schema.startswith("#/"):
        return f"urn:document{schema}"
    return schema


def test_every_error_code_has_an_example() -> None:
    shown = {
        value["error"]["code"]
        for _, _, value in _examples()
        if isinstance(value, dict) and "error" in value
    }
    assert shown == set(ERROR_CODES)


@pytest.mark.django_db
def test_the_docs_page_is_public_and_loads_only_local_files(settings: Any) -> None:
    settings.PUBLIC_URL = "https://vouchers.example"
    client = CheckedClient()
    page = client.get("/docs/api/")
    assert page.status_code == 200
    before, base_url, after = page.content.decode().partition("https://vouchers.example/api/v1<")
    assert base_url
    html = before + after
    assert "https://" not in html
    assert "http://" not in html
    assert "<script>" not in html
    assert "script-src 'self';" in page.headers["Content-Security-Policy"]
    links = re.findall(r'(?:src|href)="([^"]+)"', html)
    loaded = [path for path in links if path.startswith("/static/")]
    assert len(loaded) == 3
    for path in loaded:
        file = client.get(path)
        assert (file.status_code, len(file.getvalue()) > 100) == (200, True), path
        file.close()
    places = {f"#{place}" for place in re.findall(r' id="([^"]+)"', html)}
    assert {link for link in links if link.startswith("#")} <= places


@pytest.mark.django_db
def test_the_docs_page_has_everything_that_the_document_has() -> None:
    html = CheckedClient().get("/docs/api/").content.decode()
    document = served_document()
    for path, methods in document["paths"].items():
        assert f"<code>{path}</code>" in html, path
        for operation in methods.values():
            assert f'id="{operation["operationId"]}"' in html, path
            for parameter in operation.get("parameters", ()):
                assert f"<code>{parameter['name']}</code>" in html, parameter
    for name, schema in document["components"]["schemas"].items():
        assert name in html or "enum" in schema, name
        for value in (*schema.get("properties", ()), *schema.get("enum", ())):
            assert value is None or f"<code>{value}</code>" in html or value is True, (name, value)
    for code in ERROR_CODES:
        assert f"Example: {code}" in html
        assert f'id="{code}"' in html
    for reason in REASONS:
        assert f"<code>{reason}</code>" in html
    assert "Header <code>Idempotent-Replay</code>" in html


@pytest.mark.django_db
def test_the_docs_page_reads_as_text() -> None:
    html = CheckedClient().get("/docs/api/").content.decode()
    assert "<h1>API reference</h1>" in html
    assert "<br>" not in html  # lines of a paragraph are joined
    assert "After a network failure" in html
    for needed in ("required", "optional", "header, required", "query, optional"):
        assert f'<span class="soft">{needed}</span>' in html
    assert "or null or null" not in html


@pytest.mark.parametrize(
    ("low", "high", "unit", "words"),
    [
        (1, None, "", "at least 1"),
        (None, 100, "", "at most 100"),
        (1, 100, "", "1 to 100"),
        (0, 0, "", "always 0"),
        (1, 1, "", "always 1"),
        (1, None, "character", "at least 1 character"),
        (None, 64, "character", "at most 64 characters"),
        (1, 128, "character", "1 to 128 characters"),
    ],
)
def test_limits_are_in_words(low: int | None, high: int | None, unit: str, words: str) -> None:
    assert limit(low, high, unit) == words


@pytest.mark.parametrize("method", ["POST", "OPTIONS", "DELETE"])
def test_the_docs_page_allows_only_get_and_head(method: str) -> None:
    assert CheckedClient().generic(method, "/docs/api/").status_code == 405
