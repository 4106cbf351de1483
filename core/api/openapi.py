"""The OpenAPI document: adds the envelope, the errors and other rules to the generated schema."""

from collections.abc import Iterable
from functools import cache
from http import HTTPStatus
from inspect import getdoc
from threading import Lock
from typing import Any

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from drf_spectacular.extensions import (
    OpenApiSerializerExtension,
)
from drf_spectacular.generators import SchemaGenerator
from drf_spectacular.utils import (
    OpenApiExample,
    OpenApiParameter,
    OpenApiResponse,
    PolymorphicProxySerializer,
    extend_schema_serializer,
    inline_serializer,
)
from rest_framework import serializers

from core.api.envelope import failure, json_response, success
from core.api.errors import ApiError, ErrorCode, RefusalReason
from core.api.pagination import MAX_PER_PAGE, Page, page_data
from core.api.schemas import (
    SUCCESS,
    FailureSerializer,
    MessageSerializer,
    PaginationSerializer,
)
from core.api.views import get_only
from core.texts import in_english

SerializerClass = type[serializers.Serializer[Any]]

# Every endpoint may return these errors.
COMMON_ERRORS = (
    ErrorCode.MISSING_TOKEN,
    ErrorCode.INVALID_TOKEN,
    ErrorCode.CLIENT_DISABLED,
    ErrorCode.IP_NOT_ALLOWED,
    ErrorCode.RATE_LIMITED,
)

# Requests that are rejected before they reach the API, at any endpoint and at some.
COMMON_MESSAGES = (400, 403, 405)
MESSAGES = {
    400: "The request cannot be read, for example because its Host header is unknown",
    403: "The request was sent over plain HTTP",
    404: "The id in the path is not a positive integer",
    405: "The path does not have this method",
    413: "The body is too large",
    500: "The service is not available",
}

SERVER_ERRORS = "5XX"

# Members of the error object besides `code` and `message`, for the examples.
EXAMPLE_EXTRAS: dict[ErrorCode, dict[str, Any]] = {
    ErrorCode.RATE_LIMITED: {"retry_after_seconds": 17},
    ErrorCode.VALIDATION_FAILED: {"fields": {"quantity": ["A valid integer is required."]}},
    ErrorCode.REQUEST_ABANDONED: {"reference": "01JZX8Q4T5V6W7X8Y9Z0A1B2C3"},
    ErrorCode.PRODUCT_REFERENCE_NOT_FOUND: {"merchant_reference": "steam-10-eu"},
    ErrorCode.ORDER_REFUSED: {"reason": RefusalReason.INSUFFICIENT_STOCK.value},
}


def page_parameters(default_per_page: int) -> list[OpenApiParameter]:
    """The `page` and `per_page` parameters of a list endpoint.

    They have no documented bounds: a value out of range is clamped, not refused.
    """
    return [
        OpenApiParameter(
            "page",
            {"type": "integer", "default": 1},
            description=(
                "The page number, from 1. If it is smaller or not a number, the first page is"
                " returned."
            ),
        ),
        OpenApiParameter(
            "per_page",
            {"type": "integer", "default": default_per_page},
            description=(
                f"Items per page, from 1 to {MAX_PER_PAGE}. A value outside this range is changed"
                " to the nearest limit. If it is not a number, the default is used. Parameters with"
                " other names, such as `limit`, are ignored."
            ),
        ),
    ]


PRODUCT_ID = OpenApiParameter(
    "product",
    {"type": "integer", "format": "int64", "minimum": 1},
    OpenApiParameter.PATH,
    description=(
        "The product id. If it is not written in digits only, the response is 404 and has only a"
        " `message`."
    ),
)
REPLAY_HEADER = OpenApiParameter(
    "Idempotent-Replay",
    {"type": "string", "enum": ["true"]},
    OpenApiParameter.HEADER,
    response=[201],
    description="Present only when a stored success is replayed.",
)


def example(data: Any, name: str = "Success") -> OpenApiExample:
    """An example of a success with this `data`."""
    return OpenApiExample(name, value=success(data), response_only=True)


def page_example(items: list[Any], per_page: int) -> OpenApiExample:
    """An example of a list with these items on its only page."""
    return example(page_data(items, page=Page(1, per_page), total=len(items)))


def documented(
    serializer: SerializerClass,
    *,
    status: int = 200,
    errors: Iterable[ErrorCode] = (),
    messages: Iterable[int] = (),
    examples: Iterable[OpenApiExample] = (),
) -> dict[int | str, Any]:
    """The documented responses of an endpoint, by status: its success and its failures.

    `errors` are the codes of this endpoint besides COMMON_ERRORS. `messages` are the statuses that
    may have a `{message}` body besides COMMON_MESSAGES.
    """
    failures = _failures((*COMMON_ERRORS, *errors))
    for early in (*COMMON_MESSAGES, *messages):
        failures[early] = _or_message(early, failures.get(early))
    return {
        status: OpenApiResponse(
            _envelope_of(serializer), HTTPStatus(status).phrase, examples=list(examples)
        ),
        **failures,
        SERVER_ERRORS: _server_errors(),
    }


def _server_errors() -> OpenApiResponse:
    """A 5xx of the service, or of a proxy, whose body may be of any kind."""
    return _or_message(500, _failures([ErrorCode.SERVER_ERROR])[500])


def _failures(codes: Iterable[ErrorCode]) -> dict[int | str, OpenApiResponse]:
    by_status: dict[int, list[ErrorCode]] = {}
    for code in codes:
        by_status.setdefault(int(code.status), []).append(code)
    return {
        status: OpenApiResponse(
            FailureSerializer,
            ", ".join(f"`{code}`" for code in by_status[status]),
            examples=[_example_of(code) for code in by_status[status]],
        )
        for status in sorted(by_status)
    }


def _example_of(code: ErrorCode) -> OpenApiExample:
    error = ApiError(code, **EXAMPLE_EXTRAS.get(code, {}))
    return OpenApiExample(code.value, value=failure(error), response_only=True)


def _or_message(status: int, failure: OpenApiResponse | None) -> OpenApiResponse:
    phrase = f"{MESSAGES[status]} (rejected before it reached the API)"
    if failure is None:
        return OpenApiResponse(MessageSerializer, f"{phrase}.")
    either = PolymorphicProxySerializer(
        "FailureOrMessage", [FailureSerializer, MessageSerializer], None, many=False
    )
    text = f"{failure.description}; or {phrase[0].lower()}{phrase[1:]}."
    return OpenApiResponse(either, text, failure.examples)


@cache
def _envelope_of(serializer: SerializerClass) -> SerializerClass:
    name = serializer.__name__.removesuffix("Serializer")
    return _shape(
        f"{name}Envelope",
        "The response to a request that succeeded.",
        success=serializers.BooleanField(help_text=SUCCESS),
        data=serializer(help_text="What the operation returns."),
    )


@cache
def page_schema(serializer: SerializerClass) -> SerializerClass:
    """The serializer of the `data` of a list response: `items` and `pagination`."""
    name = serializer.__name__.removesuffix("Serializer")
    return _shape(
        f"{name}Page",
        "One page of a list.",
        items=serializer(many=True, help_text="The items of this page."),
        pagination=PaginationSerializer(help_text="The position of this page in the whole list."),
    )


def _shape(name: str, description: str, **members: Any) -> SerializerClass:
    """A serializer with these members that stays a single object in a list endpoint."""
    shape = type(inline_serializer(name, members))
    shape.__doc__ = description
    return extend_schema_serializer(many=False)(shape)


class OneOfExtension(OpenApiSerializerExtension):  # type: ignore[no-untyped-call]
    """Documents a OneOfSerializer. No discriminator: a voucher purchase may omit delivery_type."""

    target_class = "core.api.serializer_fields.OneOfSerializer"
    match_subclasses = True

    def map_serializer(self, auto_schema: Any, direction: Any) -> dict[str, Any]:
        return {
            "description": getdoc(self.target),
            "oneOf": [
                auto_schema.resolve_serializer(shape, direction).ref for shape in self.target.shapes
            ],
        }


LINKS = "x-links"


def add_links(result: dict[str, Any], **kwargs: Any) -> dict[str, Any]:
    """Post-processing hook: the success of an operation has the links that its view declares."""
    for item in result["paths"].values():
        for operation in item.values():
            if links := operation.pop(LINKS, None):
                status = min(operation["responses"])
                operation["responses"][status]["links"] = links
    return result


def require_bodies(result: dict[str, Any], **kwargs: Any) -> dict[str, Any]:
    """Post-processing hook: marks every documented request body as required."""
    for item in result["paths"].values():
        for operation in item.values():
            if "requestBody" in operation:
                operation["requestBody"]["required"] = True
    return result


def set_success_values(result: dict[str, Any], **kwargs: Any) -> dict[str, Any]:
    """Post-processing hook: `success` is always true in an envelope and false in a failure.

    It runs after `postprocess_schema_enums`, which would give these enums names of their own.
    """
    for name, schema in result["components"]["schemas"].items():
        if name == "Failure" or name.endswith("Envelope"):
            schema["properties"]["success"]["enum"] = [name != "Failure"]
    return result


def allow_null_beside_enums(result: dict[str, Any], **kwargs: Any) -> dict[str, Any]:
    """Post-processing hook: an enum that may be null is a nullable string, and null is a value.

    drf-spectacular writes one of the enum and NullEnum, an enum without a type. Generators of
    clients write code for it that does not compile, or that never expects null. OpenAPI 3.0 allows
    null only if the enum names it.
    """
    schemas = result["components"]["schemas"]
    null = {"$ref": "#/components/schemas/NullEnum"}
    for schema in schemas.values():
        for member in schema.get("properties", {}).values():
            if null in member.get("oneOf", ()):
                enums = [each for each in member.pop("oneOf") if each != null]
                member |= {"type": "string", "nullable": True, "allOf": enums}
                for enum in enums:
                    values = schemas[enum["$ref"].rpartition("/")[2]]
                    values |= {"nullable": True, "enum": [*values["enum"], None]}
    schemas.pop("NullEnum", None)
    return result


def add_request_ids(result: dict[str, Any], **kwargs: Any) -> dict[str, Any]:
    """Post-processing hook: every response has the X-Request-Id header."""
    result["components"]["headers"] = {
        "X-Request-Id": {
            "description": (
                "If you contact support about a request, quote this id. The merchant site finds"
                " purchases and refused requests by it, if they had a known API key."
            ),
            "required": True,
            "schema": {"type": "string", "format": "uuid"},
        }
    }
    for item in result["paths"].values():
        for operation in item.values():
            for response in operation["responses"].values():
                reference = {"$ref": "#/components/headers/X-Request-Id"}
                response.setdefault("headers", {})["X-Request-Id"] = reference
    return result


class DescribedExtension(OpenApiSerializerExtension):  # type: ignore[no-untyped-call]
    """Documents the rules of a DescribedSerializer."""

    target_class = "core.api.serializer_fields.DescribedSerializer"
    match_subclasses = True

    def map_serializer(self, auto_schema: Any, direction: Any) -> dict[str, Any]:
        schema = auto_schema._map_serializer(self.target, direction, bypass_extensions=True)
        for name, rules in self.target.property_rules.items():
            schema["properties"][name] |= rules
        return {**schema, **self.target.schema_rules}


_lock = Lock()


def openapi_document() -> dict[str, Any]:
    """The OpenAPI document, generated once per process because it takes long."""
    with _lock:  # drf-spectacular's first document is not thread-safe
        return _generate_document()


@cache
def _generate_document() -> dict[str, Any]:
    generator = SchemaGenerator(urlconf=settings.API_URLCONF)  # type: ignore[no-untyped-call]
    with in_english():  # the reader of a page may be the first to need it
        document: dict[str, Any] = generator.get_schema(request=None, public=True)  # type: ignore[no-untyped-call]
    return document


@get_only
def openapi_json(request: HttpRequest) -> HttpResponse:
    """GET /openapi.json: public, without authentication."""
    return json_response(200, openapi_document())
