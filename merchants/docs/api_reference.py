"""The page at /docs/api/: the OpenAPI document as a reference that needs no script.

It has no form to call the API: there is no sandbox, and a key never belongs in a browser
(contract, "Authentication").
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from functools import cache
from typing import Any

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.template.loader import render_to_string
from django.utils.html import escape, format_html, format_html_join
from django.utils.safestring import SafeString, mark_safe
from django.views.decorators.csrf import csrf_exempt
from django.views.decorators.http import require_safe

from core.api.errors import ErrorCode, RefusalReason
from core.api.openapi import openapi_document
from core.api.paths import API_BASE

CODE = re.compile(r"`([^`]+)`")
LINE_BREAK = re.compile(r"(?<!\n)\n(?!\n)")  # inside a paragraph
ERROR_CODES = {code.value for code in ErrorCode}
# The rules that limit a value from below and above, and what they count.
LIMITS = [
    ("minimum", "maximum", ""),
    ("minLength", "maxLength", "character"),
    ("minItems", "maxItems", "item"),
    ("minProperties", "maxProperties", "member"),
]


@csrf_exempt  # it changes nothing, and refuses a POST before its body arrives
@require_safe
def docs(request: HttpRequest) -> HttpResponse:
    """GET /docs/api/."""
    return render(request, "merchants/api_reference.html", _context())


def reference_html() -> str:
    """The page as text for the search."""
    return render_to_string("merchants/api_reference.html", _context())


def _context() -> dict[str, Any]:
    return {**_reference(), "base_url": f"{settings.PUBLIC_URL}{API_BASE}"}


@cache
def _reference() -> dict[str, Any]:
    document = openapi_document()
    return {
        "title": "API reference",
        "name": document["info"]["title"],
        "version": document["info"]["version"],
        "intro": text_html(document["info"]["description"]),
        "document": f"{API_BASE}/openapi.json",
        "headers": _headers(document["components"]),
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
        "errors": [
            (code, code.status.value, text_html(code.default_message)) for code in ErrorCode
        ],
        "reasons": [(reason, text_html(reason.message)) for reason in RefusalReason],
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
                    "about": text_html(operation["description"]),
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
        "needed": "required" if parameter.get("required") else "optional",
        "type": _type(parameter["schema"]),
        "about": text_html(parameter.get("description", "")),
    }


def _response(status: str, response: dict[str, Any]) -> dict[str, Any]:
    content = response["content"]["application/json"]
    return {
        "status": status,
        "about": text_html(response["description"]),
        "type": _type(content["schema"]),
        "headers": _headers(response),
        "examples": _examples(content),
    }


def _headers(holder: dict[str, Any]) -> list[tuple[str, SafeString]]:
    """The headers described here. A header of all responses is a reference, described once."""
    return [
        (name, text_html(header["description"]))
        for name, header in holder["headers"].items()
        if "$ref" not in header
    ]


def _examples(content: dict[str, Any]) -> list[tuple[str, str]]:
    """The examples as JSON text, each with its name."""
    return [
        (example.get("summary", name), json.dumps(example["value"], indent=2))
        for name, example in content.get("examples", {}).items()
    ]


def _object(name: str, schema: dict[str, Any]) -> dict[str, Any]:
    return {
        "name": name,
        "about": text_html(schema.get("description", "")),
        "one_of": _type(schema) if "oneOf" in schema else "",
        "members": [
            {
                "name": member,
                "needed": "required" if member in schema.get("required", ()) else "optional",
                "type": _type(rules),
                "about": text_html(rules.get("description", "")),
            }
            for member, rules in schema.get("properties", {}).items()
        ],
    }


def _type(schema: dict[str, Any]) -> SafeString:
    """A schema in words, with a link to each object that it names."""
    if "$ref" in schema:
        name = schema["$ref"].rpartition("/")[2]
        named = openapi_document()["components"]["schemas"][name]
        if "enum" in named:
            return _type(named)
        return format_html('<a href="#{}">{}</a>', name, name)
    for several, word in (("oneOf", " or "), ("allOf", " and ")):
        if several in schema:
            types = [_type(one) for one in schema[several]]
            return _or_null(mark_safe(word.join(dict.fromkeys(types))), schema)  # noqa: S308
    if "enum" in schema:
        # The member that uses a nullable enum says "or null".
        values = [(json.dumps(value).strip('"'),) for value in schema["enum"] if value is not None]
        several = "one of " if len(values) > 1 else ""
        return format_html("{}{}", several, format_html_join(", ", "<code>{}</code>", values))
    parts = [escape(schema.get("type", "anything"))]
    if "items" in schema:
        parts = [format_html("array of {}", _type(schema["items"]))]
    if schema.get("format") in ("date-time", "uuid"):
        parts.append(escape(schema["format"]))
    parts += [
        escape(limit(schema.get(low), schema.get(high), unit))
        for low, high, unit in LIMITS
        if low in schema or high in schema
    ]
    if "pattern" in schema:
        parts.append(format_html("matching <code>{}</code>", schema["pattern"]))
    if "default" in schema:
        parts.append(format_html("default {}", schema["default"]))
    words = format_html_join(", ", "{}", ((part,) for part in parts))
    if isinstance(schema.get("additionalProperties"), dict):
        inside = _type(schema["additionalProperties"])
        words = format_html("{}; each value: {}", words, inside)
    return _or_null(words, schema)


def limit(low: int | None, high: int | None, unit: str) -> str:
    """The allowed values in words, or the allowed number of units: `1 to 128 characters`."""
    if low == high:
        words = f"always {low}"
    elif low is None:
        words = f"at most {high}"
    elif high is None:
        words = f"at least {low}"
    else:
        words = f"{low} to {high}"
    if not unit:
        return words
    last = low if high is None else high
    return f"{words} {unit}" if last == 1 else f"{words} {unit}s"


def _or_null(words: SafeString, schema: dict[str, Any]) -> SafeString:
    return format_html("{}, or null", words) if schema.get("nullable") else words


def text_html(words: str) -> SafeString:
    """The text as HTML: a line for each paragraph, and backquoted words as code."""
    return mark_safe(CODE.sub(_code, escape(LINE_BREAK.sub(" ", words))))  # noqa: S308  # escaped


def _code(words: re.Match[str]) -> str:
    """Escaped words as code, with a link if they are an error code."""
    code = f"<code>{words[1]}</code>"
    return f'<a href="#{words[1]}">{code}</a>' if words[1] in ERROR_CODES else code
