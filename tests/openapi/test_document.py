"""The OpenAPI document is valid, complete and equal to docs/openapi.yaml."""

import re
from collections.abc import Iterator
from typing import Any

import pytest
import yaml
from openapi_schema_validator import OAS30Validator
from openapi_spec_validator import OpenAPIV30SpecValidator, validate
from referencing import Registry
from referencing.jsonschema import DRAFT4

from embedded.environment import PROJECT
from tests.answers import CheckedClient, operations, served_document
from tests.contract.rows import ERROR_CODES, REASONS


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
    assert set(post["responses"]["413"]["content"]) == {"application/json"}


@pytest.mark.parametrize("body", ["VoucherPurchaseRequest", "TopUpPurchaseRequest"])
def test_a_purchase_body_allows_no_unknown_field(body: str) -> None:
    assert served_document()["components"]["schemas"][body]["additionalProperties"] is False


def test_the_limits_of_the_quantity_are_documented() -> None:
    voucher = served_document()["components"]["schemas"]["VoucherPurchaseRequest"]
    quantity = voucher["properties"]["quantity"]
    assert (quantity["minimum"], quantity["maximum"]) == (1, 100)
    assert voucher["required"] == ["quantity"]


def test_error_codes_and_reasons_are_enums() -> None:
    enums = [
        set(schema["enum"])
        for schema in served_document()["components"]["schemas"].values()
        if "enum" in schema
    ]
    assert set(ERROR_CODES) in enums
    assert set(REASONS) in enums


def _examples() -> Iterator[tuple[str, dict[str, Any], Any]]:
    for method, path, operation in operations(served_document()):
        bodies = {**operation["responses"], "request": operation.get("requestBody", {})}
        for status, body in bodies.items():
            media = body.get("content", {}).get("application/json", {})
            for name, example in media.get("examples", {}).items():
                yield f"{method} {path} {status} {name}", media["schema"], example["value"]


def test_every_example_matches_its_schema() -> None:
    resource = DRAFT4.create_resource(served_document())
    registry: Registry[Any] = Registry().with_resource("urn:document", resource)
    names = []
    for name, schema, value in _examples():
        absolute = _absolute(schema)
        assert OAS30Validator(absolute, registry=registry).is_valid(value), name
        names.append(name)
    assert len([name for name in names if name.startswith("POST /orders request")]) == 3
    assert len([name for name in names if name.startswith("POST /orders 201")]) == 2


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
def test_the_docs_page_is_public_and_loads_only_local_files() -> None:
    client = CheckedClient()
    page = client.get("/docs/")
    assert page.status_code == 200
    html = page.content.decode()
    assert "https://" not in html
    assert "http://" not in html
    assert "<script>" not in html
    assert "script-src 'self';" in page.headers["Content-Security-Policy"]
    loaded = re.findall(r'(?:src|href)="([^"]+)"', html)
    assert len(loaded) >= 5
    for path in loaded:
        assert path.startswith(("/static/", "/docs/?script")), path
        file = client.get(path)
        assert (file.status_code, len(file.getvalue()) > 100) == (200, True), path
        file.close()
    script = client.get("/docs/?script=").content.decode()
    assert '"/api/v1/openapi.json"' in script
    assert "https://" not in script


@pytest.mark.parametrize("method", ["POST", "OPTIONS", "DELETE"])
def test_the_docs_page_allows_only_get_and_head(method: str) -> None:
    assert CheckedClient().generic(method, "/docs/").status_code == 405
