"""The page at /docs/: the OpenAPI document as a reference that needs no script.

It has no form to call the API: there is no sandbox, and a key never belongs in a browser
(contract, "Authentication").
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from functools import cache
from http import HTTPStatus
from typing import Any

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils.html import escape, format_html, format_html_join
from django.utils.safestring import SafeString, mark_safe
from django.views.decorators.csrf import csrf_exempt
from django.views.decorators.http import require_safe

from config.api.openapi import openapi_document
from config.api.paths import API_BASE

CODE = re.compile(r"`([^`]+)`")
RULES = {
    "minimum": "from {}",
    "maximum": "to {}",
    "minLength": "at least {} characters",
    "maxLength": "at most {} characters",
    "maxProperties": "at most {} members",
    "maxItems": "at most {} items",
    "pattern": "matches {}",
    "default": "default {}",
}


@csrf_exempt  # it changes nothing, and refuses a POST before its body arrives
@require_safe
def docs(request: HttpRequest) -> HttpResponse:
    """GET /docs/."""
    return render(request, "docs.html", _reference())


@cache
def _reference() -> dict[str, Any]:
    document = openapi_document()
    return {
        "title": document["info"]["title"],
        "version": document["info"]["version"],
        "intro": _text(document["info"]["description"]),
        "document": f"{API_BASE}/openapi.json",
        "base": API_BASE,
        "groups": [
            {
                **tag,
                "title": tag["name"].capitalize().replace("Topup-", "Top-up "),
                "operations": list(_operations(document, tag["name"])),
            }
            for tag in document["tags"]
        ],
        "objects": [
            _object(name, schema)
            for name, schema in document["components"]["schemas"].items()
            if "properties" in schema or "oneOf" in schema
        ],
    }


def _operations(document: dict[str, Any], tag: str) -> Iterator[dict[str, Any]]:
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            if tag in operation["tags"]:
                body = operation.get("requestBody", {}).get("content", {}).get("application/json")
                yield {
                    "id": operation["operationId"],
                    "method": method.upper(),
                    "path": path,
                    "about": _text(operation["description"]),
                    "parameters": [_parameter(one) for one in operation.get("parameters", [])],
                    "body": body and {"type": _type(body["schema"]), "examples": _examples(body)},
                    "responses": [
                        _response(status, response)
                        for status, response in sorted(operation["responses"].items())
                    ],
                }


def _parameter(parameter: dict[str, Any]) -> dict[str, Any]:
    return {
        "name": parameter["name"],
        "place": parameter["in"],
        "required": parameter.get("required", False),
        "type": _type(parameter["schema"]),
        "about": _text(parameter.get("description", "")),
    }


def _response(status: str, response: dict[str, Any]) -> dict[str, Any]:
    content = response["content"]["application/json"]
    return {
        "status": status,
        "phrase": HTTPStatus(int(status)).phrase,
        "about": _text(response["description"]),
        "type": _type(content["schema"]),
        "examples": _examples(content),
    }


def _examples(content: dict[str, Any]) -> list[tuple[str, str]]:
    """The examples as JSON text, each with its name."""
    return [
        (example.get("summary", name), json.dumps(example["value"], indent=2))
        for name, example in content.get("examples", {}).items()
    ]


def _object(name: str, schema: dict[str, Any]) -> dict[str, Any]:
    return {
        "name": name,
        "about": _text(schema.get("description", "")),
        "one_of": _type(schema) if "oneOf" in schema else "",
        "members": [
            {
                "name": member,
                "type": _type(rules),
                "required": member in schema.get("required", ()),
                "about": _text(rules.get("description", "")),
            }
            for member, rules in schema.get("properties", {}).items()
        ],
    }


def _type(schema: dict[str, Any]) -> SafeString:
    """A schema in words, with a link to each object that it names."""
    if "$ref" in schema:
        name = schema["$ref"].rpartition("/")[2]
        known = openapi_document()["components"]["schemas"][name]
        if "enum" in known:
            return _type(known)
        return format_html('<a href="#{}">{}</a>', name, name)
    for several, word in (("oneOf", " or "), ("allOf", " and ")):
        if several in schema:
            found = [_type(one) for one in schema[several]]
            return _or_null(mark_safe(word.join(dict.fromkeys(found))), schema)  # noqa: S308
    if "enum" in schema:
        values = ((json.dumps(value).strip('"'),) for value in schema["enum"])
        return _or_null(format_html_join(", ", "<code>{}</code>", values), schema)
    words = schema.get("type", "anything")
    if words == "array":
        return _or_null(format_html("array of {}", _type(schema["items"])), schema)
    if isinstance(schema.get("additionalProperties"), dict):
        inside = _type(schema["additionalProperties"])
        return _or_null(format_html("object with values of type {}", inside), schema)
    if schema.get("format") in ("date-time", "uuid"):
        words = f"{words}, {schema['format']}"
    rules = [text.format(schema[rule]) for rule, text in RULES.items() if rule in schema]
    return _or_null(escape(", ".join([words, *rules])), schema)


def _or_null(words: SafeString, schema: dict[str, Any]) -> SafeString:
    return format_html("{}, or null", words) if schema.get("nullable") else words


def _text(words: str) -> SafeString:
    """The text as HTML, with what is in backquotes as code."""
    return mark_safe(CODE.sub(r"<code>\1</code>", escape(words)))  # noqa: S308  # escaped before
