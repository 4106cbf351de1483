"""The OpenAPI document: adds the envelope, the errors and request rules to the generated schema."""

from collections.abc import Iterable
from functools import cache
from http import HTTPStatus
from threading import Lock
from typing import Any

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
from drf_spectacular.views import SpectacularSwaggerSplitView
from rest_framework import serializers

from config.api.envelope import failure, json_response
from config.api.errors import ApiError, ErrorCode, RefusalReason
from config.api.pagination import MAX_PER_PAGE
from config.api.views import get_only

SerializerClass = type[serializers.Serializer[Any]]

# Every endpoint may return these errors.
COMMON_ERRORS = (
    ErrorCode.MISSING_TOKEN,
    ErrorCode.INVALID_TOKEN,
    ErrorCode.CLIENT_DISABLED,
    ErrorCode.IP_NOT_ALLOWED,
    ErrorCode.RATE_LIMITED,
)

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
            description="The page number, from 1. A smaller value, or not a number, means 1.",
        ),
        OpenApiParameter(
            "per_page",
            {"type": "integer", "default": default_per_page},
            description=(
                f"Items per page, clamped to 1..{MAX_PER_PAGE}. Not a number means the default."
            ),
        ),
    ]


PRODUCT_ID = OpenApiParameter(
    "product",
    {"type": "integer", "format": "int64", "minimum": 1},
    OpenApiParameter.PATH,
    description="The product id. A path with any other text is unknown: 404 with only a `message`.",
)
REPLAY_HEADER = OpenApiParameter(
    "Idempotent-Replay",
    {"type": "string", "enum": ["true"]},
    OpenApiParameter.HEADER,
    response=[201],
    description="Present only when a stored success is replayed.",
)


class ErrorSerializer(serializers.Serializer[Any]):
    """Why the request failed. Branch on `code`; show `message` to people."""

    code = serializers.ChoiceField([code.value for code in ErrorCode])
    message = serializers.CharField()
    reason = serializers.ChoiceField(
        [reason.value for reason in RefusalReason], required=False, allow_null=True
    )
    fields = serializers.DictField(  # type: ignore[assignment]  # the contract's name
        child=serializers.ListField(child=serializers.CharField()), required=False
    )
    reference = serializers.CharField(required=False)
    merchant_reference = serializers.CharField(required=False)
    retry_after_seconds = serializers.IntegerField(required=False, min_value=1)
    recovery = serializers.DictField(child=serializers.CharField(), required=False)


class FailureSerializer(serializers.Serializer[Any]):
    """A failure produced by the API."""

    success = serializers.BooleanField()
    error = ErrorSerializer()


class MessageSerializer(serializers.Serializer[Any]):
    """A request that was rejected before it reached the API."""

    message = serializers.CharField()


class PaginationSerializer(serializers.Serializer[Any]):
    """The position of this page in the whole list."""

    page = serializers.IntegerField(min_value=1)
    per_page = serializers.IntegerField(min_value=1, max_value=MAX_PER_PAGE)
    total = serializers.IntegerField(min_value=0)
    last_page = serializers.IntegerField(min_value=1)


def answers(
    serializer: SerializerClass,
    *,
    status: int = 200,
    errors: Iterable[ErrorCode] = (),
    messages: Iterable[int] = (),
    examples: Iterable[OpenApiExample] = (),
) -> dict[int, Any]:
    """The documented responses of an endpoint, by status: its success and its failures.

    `errors` are the codes of this endpoint besides COMMON_ERRORS. `messages` are the statuses that
    may have a `{message}` body.
    """
    failures = _failures((*COMMON_ERRORS, *errors))
    for early in messages:
        failures[early] = _or_message(early, failures.get(early))
    return {
        status: OpenApiResponse(
            _envelope_of(serializer), HTTPStatus(status).phrase, examples=list(examples)
        ),
        **failures,
    }


def _failures(codes: Iterable[ErrorCode]) -> dict[int, OpenApiResponse]:
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
    phrase = f"{HTTPStatus(status).phrase}, rejected before it reached the API."
    if failure is None:
        return OpenApiResponse(MessageSerializer, phrase)
    either = PolymorphicProxySerializer(
        "FailureOrMessage", [FailureSerializer, MessageSerializer], None, many=False
    )
    return OpenApiResponse(either, f"{failure.description}; or {phrase}", failure.examples)


@cache
def _envelope_of(serializer: SerializerClass) -> SerializerClass:
    name = serializer.__name__.removesuffix("Serializer")
    return _shape(f"{name}Envelope", success=serializers.BooleanField(), data=serializer())


@cache
def page_schema(serializer: SerializerClass) -> SerializerClass:
    """The serializer of the `data` of a list response: `items` and `pagination`."""
    name = serializer.__name__.removesuffix("Serializer")
    return _shape(f"{name}Page", items=serializer(many=True), pagination=PaginationSerializer())


def _shape(name: str, **members: Any) -> SerializerClass:
    """A serializer with these members that stays a single object in a list endpoint."""
    return extend_schema_serializer(many=False)(type(inline_serializer(name, members)))


class OneOfExtension(OpenApiSerializerExtension):  # type: ignore[no-untyped-call]
    """Documents a OneOfSerializer. No discriminator: a voucher purchase may omit delivery_type."""

    target_class = "config.api.serializer_fields.OneOfSerializer"
    match_subclasses = True

    def map_serializer(self, auto_schema: Any, direction: Any) -> dict[str, Any]:
        return {
            "oneOf": [
                auto_schema.resolve_serializer(shape, direction).ref for shape in self.target.shapes
            ]
        }


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


class StrictBody(OpenApiSerializerExtension):  # type: ignore[no-untyped-call]
    """Documents that a StrictSerializer refuses undeclared fields."""

    target_class = "config.api.serializer_fields.StrictSerializer"
    match_subclasses = True

    def map_serializer(self, auto_schema: Any, direction: Any) -> dict[str, Any]:
        schema = auto_schema._map_serializer(self.target, direction, bypass_extensions=True)
        return {**schema, "additionalProperties": False}


_lock = Lock()


def openapi_document() -> dict[str, Any]:
    """The OpenAPI document, generated once per process because it takes long."""
    with _lock:  # drf-spectacular's first document is not thread-safe
        return _generate_document()


@cache
def _generate_document() -> dict[str, Any]:
    generator = SchemaGenerator()  # type: ignore[no-untyped-call]
    document: dict[str, Any] = generator.get_schema(request=None, public=True)  # type: ignore[no-untyped-call]
    return document


@get_only
def openapi_json(request: HttpRequest) -> HttpResponse:
    """GET /openapi.json: public, without authentication."""
    return json_response(200, openapi_document())


class DocsView(SpectacularSwaggerSplitView):
    """GET /docs/: the document as a Swagger page.

    The page loads nothing from another host and has no inline script, because people type a key
    into it.
    """

    authentication_classes: list[Any] = []
    permission_classes: list[Any] = []
    throttle_classes: list[Any] = []
    http_method_names = ["get", "head"]
