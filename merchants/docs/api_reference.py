"""The page at /docs/api/: the OpenAPI document as a reference that needs no script.

It has no form to call the API: there is no sandbox, and a key never belongs in a browser
(contract, "Authentication"). The OpenAPI document is in English; this page translates its
descriptions.
"""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterator
from functools import cache
from typing import Any

from django.utils.html import escape, format_html, format_html_join
from django.utils.safestring import SafeString, mark_safe
from django.utils.translation import gettext as _
from django.utils.translation import ngettext_lazy

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
UNITS = {
    "character": ngettext_lazy("%(limit)s character", "%(limit)s characters", "number"),
    "item": ngettext_lazy("%(limit)s item", "%(limit)s items", "number"),
    "member": ngettext_lazy("%(limit)s member", "%(limit)s members", "number"),
}


@cache
def reference(language: str) -> dict[str, Any]:
    """The document in this language, which is active."""
    document = openapi_document()
    common = _common_responses(document)
    return {
        "name": document["info"]["title"],
        "version": document["info"]["version"],
        "intro": _about(document["info"]),
        "document": f"{API_BASE}/openapi.json",
        "headers": _headers(document["components"]),
        "groups": [
            {
                **tag,
                "title": _(title_of(tag)),
                "description": _about(tag),
                "operations": list(_operations(document, tag["name"], common)),
            }
            for tag in document["tags"]
        ],
        "common": [_response(status, response) for status, response in common],
        "objects": [
            _object(name, schema)
            for name, schema in document["components"]["schemas"].items()
            if "properties" in schema or "oneOf" in schema
        ],
        "errors": [
            (code, code.status.value, text_html(_(code.default_message))) for code in ErrorCode
        ],
        "reasons": [(reason, text_html(_(reason.message))) for reason in RefusalReason],
    }


def _common_responses(document: dict[str, Any]) -> list[tuple[str, Any]]:
    """The responses that more than half of the operations have, each with its status."""
    operations = [one for methods in document["paths"].values() for one in methods.values()]
    found = [pair for one in operations for pair in one["responses"].items()]
    most = [pair for pair in found if found.count(pair) * 2 > len(operations)]
    return sorted(dict(most).items())


def _operations(
    document: dict[str, Any], tag: str, common: list[tuple[str, Any]]
) -> Iterator[dict[str, Any]]:
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            if tag in operation["tags"]:
                body = operation.get("requestBody", {}).get("content", {}).get("application/json")
                responses = sorted(operation["responses"].items())
                yield {
                    "id": operation["operationId"],
                    "method": method.upper(),
                    "path": path,
                    "about": _about(operation),
                    "curl": _curl(path, operation),
                    "parameters": [_parameter(one) for one in operation.get("parameters", [])],
                    "body": body and {"type": _type(body["schema"]), "examples": _examples(body)},
                    "responses": [_response(*pair) for pair in responses if pair not in common],
                    "common": [pair[0] for pair in responses if pair in common],
                }


def _curl(path: str, operation: dict[str, Any]) -> str:
    """The operation as a command for the shell, with the values of the first example."""
    example = _first_example(operation["responses"].get("200", {})).get("data", {})
    for name in re.findall(r"{(\w+)}", path):  # `{reference}`; the id of a `{product}`
        path = path.replace(f"{{{name}}}", str(example.get(name, example.get("id"))))
    lines = [
        f'curl "$VOUCHER_BASE_URL{path}"',
        '--header "Authorization: Bearer $VOUCHER_API_KEY"',
    ]
    if body := operation.get("requestBody"):
        data = json.dumps(_first_example(body))
        lines += [
            '--header "Content-Type: application/json"',
            '--header "Idempotency-Key: order-1042"',
            f"--data {shlex.quote(data)}",
        ]
    return " \\\n  ".join(lines)


def _first_example(holder: dict[str, Any]) -> dict[str, Any]:
    """The value of the first example of a request body or a response; empty if it has none."""
    examples = holder.get("content", {}).get("application/json", {}).get("examples", {})
    return next((example["value"] for example in examples.values()), {})


def _parameter(parameter: dict[str, Any]) -> dict[str, Any]:
    return {
        "name": parameter["name"],
        "place": parameter["in"],
        "needed": _("required") if parameter.get("required") else _("optional"),
        "type": _type(parameter["schema"]),
        "about": _about(parameter),
    }


def _response(status: str, response: dict[str, Any]) -> dict[str, Any]:
    content = response["content"]["application/json"]
    return {
        "status": status,
        "about": _about(response),
        "type": _type(content["schema"]),
        "headers": _headers(response),
        "examples": _examples(content),
    }


def _headers(holder: dict[str, Any]) -> list[tuple[str, SafeString]]:
    """The headers described here. A header of all responses is a reference, described once."""
    return [
        (name, _about(header)) for name, header in holder["headers"].items() if "$ref" not in header
    ]


def _examples(content: dict[str, Any]) -> list[tuple[str, str]]:
    """The examples as JSON text, each with its name."""
    return [
        (_(example.get("summary", name)), json.dumps(example["value"], indent=2))
        for name, example in content.get("examples", {}).items()
    ]


def _object(name: str, schema: dict[str, Any]) -> dict[str, Any]:
    return {
        "name": name,
        "about": _about(schema),
        "one_of": _type(schema) if "oneOf" in schema else "",
        "members": [
            {
                "name": member,
                "needed": _("required") if member in schema.get("required", ()) else _("optional"),
                "type": _type(rules),
                "about": _about(rules),
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
        return format_html('<a href="#{}"><code>{}</code></a>', name, name)
    for several, word in (("oneOf", _("or")), ("allOf", _("and"))):
        if several in schema:
            types = [_type(one) for one in schema[several]]
            return _or_null(mark_safe(f" {word} ".join(dict.fromkeys(types))), schema)  # noqa: S308
    if "enum" in schema:
        # The member that uses a nullable enum says "or null".
        values = [(json.dumps(value).strip('"'),) for value in schema["enum"] if value is not None]
        several = _("one of") if len(values) > 1 else ""
        return format_html("{} {}", several, format_html_join(", ", "<code>{}</code>", values))
    parts = [escape(schema.get("type") or _("anything"))]
    if "items" in schema:
        parts = [format_html("array · {}", _type(schema["items"]))]
    if schema.get("format") in ("date-time", "uuid"):
        parts.append(format_html("<code>{}</code>", schema["format"]))
    parts += [
        escape(limit(schema.get(low), schema.get(high), unit))
        for low, high, unit in LIMITS
        if low in schema or high in schema
    ]
    if "pattern" in schema:
        parts.append(format_html("{} <code>{}</code>", _("matching"), schema["pattern"]))
    if "default" in schema:
        parts.append(format_html("{} {}", _("default"), schema["default"]))
    words = format_html_join(", ", "{}", ((part,) for part in parts))
    if isinstance(schema.get("additionalProperties"), dict):
        inside = _type(schema["additionalProperties"])
        words = format_html("{}; {} {}", words, _("each value:"), inside)
    return _or_null(words, schema)


def limit(low: int | None, high: int | None, unit: str) -> str:
    """The allowed values in words, or the allowed number of units: `1 to 128 characters`."""
    if low == high:
        words = _("always %(limit)s")
    elif low is None:
        words = _("at most %(limit)s")
    elif high is None:
        words = _("at least %(limit)s")
    else:
        words = _("%(low)s to %(limit)s")
    last = low if high is None else high
    words %= {"low": low, "limit": last}
    return str(UNITS[unit] % {"number": last, "limit": words}) if unit else words


def _or_null(words: SafeString, schema: dict[str, Any]) -> SafeString:
    return format_html("{}, {}", words, _("or null")) if schema.get("nullable") else words


def title_of(tag: dict[str, Any]) -> str:
    """The heading of the operations with this tag, in English."""
    return str(tag["name"]).capitalize().replace("Topup-", "Top-up ")


def _about(part: dict[str, Any]) -> SafeString:
    """The description of a part of the document, in the reader's language."""
    text = part.get("description", "")
    return text_html(_(text) if text else "")


def text_html(words: str) -> SafeString:
    """The text as HTML: a line for each paragraph, and backquoted words as code."""
    return mark_safe(CODE.sub(_code, escape(LINE_BREAK.sub(" ", words))))  # noqa: S308  # escaped


def _code(words: re.Match[str]) -> str:
    """Escaped words as code, with a link if they are an error code."""
    code = f"<code>{words[1]}</code>"
    return f'<a href="#{words[1]}">{code}</a>' if words[1] in ERROR_CODES else code
