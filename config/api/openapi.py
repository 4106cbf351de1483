"""The OpenAPI document: what drf-spectacular cannot know of envelope, errors and key."""

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

from config.api.envelope import failure, json_response, message_response
from config.api.errors import ApiError, ErrorCode, RefusalReason

SerializerClass = type[serializers.Serializer[Any]]

# What every endpoint may answer, whatever it does.
COMMON_ERRORS = (
    ErrorCode.MISSING_TOKEN,
    ErrorCode.INVALID_TOKEN,
    ErrorCode.CLIENT_DISABLED,
    ErrorCode.IP_NOT_ALLOWED,
    ErrorCode.RATE_LIMITED,
)

# What the error object holds besides code and message, where it holds anything.
EXAMPLE_EXTRAS: dict[ErrorCode, dict[str, Any]] = {
    ErrorCode.RATE_LIMITED: {"retry_after_seconds": 17},
    ErrorCode.VALIDATION_FAILED: {"fields": {"quantity": ["A valid integer is required."]}},
    ErrorCode.REQUEST_ABANDONED: {"reference": "01JZX8Q4T5V6W7X8Y9Z0A1B2C3"},
    ErrorCode.PRODUCT_REFERENCE_NOT_FOUND: {"merchant_reference": "steam-10-eu"},
    ErrorCode.ORDER_REFUSED: {"reason": RefusalReason.INSUFFICIENT_STOCK.value},
}


def page_parameters(default_per_page: int) -> list[OpenApiParameter]:
    """`page` and `per_page` of a list. No bounds: a value out of range is clamped, not refused."""
    return [
        OpenApiParameter(
            "page",
            {"type": "integer", "default": 1},
            description="Counts from 1; anything below, or not a number, means 1.",
        ),
        OpenApiParameter(
            "per_page",
            {"type": "integer", "default": default_per_page},
            description="Clamped to 1..100; not a number means the default.",
        ),
    ]


PRODUCT_ID = OpenApiParameter(
    "product",
    {"type": "integer", "format": "int64", "minimum": 1},
    OpenApiParameter.PATH,
    description="Anything that is not a number is an unknown path: 404 with a `message` only.",
)
REPLAY_HEADER = OpenApiParameter(
    "Idempotent-Replay",
    {"type": "string", "enum": ["true"]},
    OpenApiParameter.HEADER,
    response=[201],
    description="Present only where a stored success is replayed.",
)


class ErrorSerializer(serializers.Serializer[Any]):
    """What went wrong: branch on `code`, show `message` to people."""

    code = serializers.ChoiceField([code.value for code in ErrorCode])
    message = serializers.CharField()
    reason = serializers.ChoiceField(
        [reason.value for reason in RefusalReason], required=False, allow_null=True
    )
    fields = serializers.DictField(  # type: ignore[assignment]  # the contract's own word
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
    """What is rejected before it reaches the API."""

    message = serializers.CharField()


class PaginationSerializer(serializers.Serializer[Any]):
    """Which page this is, and how many there are."""

    page = serializers.IntegerField(min_value=1)
    per_page = serializers.IntegerField(min_value=1, max_value=100)
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
    """The documented answers of an endpoint: its success in the envelope, and its failures.

    `errors` are the endpoint's own codes, besides the common ones; `messages` are statuses that
    are, or may also be, of the `{message}` kind.
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
    phrase = f"{HTTPStatus(status).phrase}, before it reached the API."
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
def page_of(serializer: SerializerClass) -> SerializerClass:
    """The serializer of a list answer's `data`."""
    name = serializer.__name__.removesuffix("Serializer")
    return _shape(f"{name}Page", items=serializer(many=True), pagination=PaginationSerializer())


def _shape(name: str, **members: Any) -> SerializerClass:
    """An object with these members; never a list, even as the answer of a list endpoint."""
    return extend_schema_serializer(many=False)(type(inline_serializer(name, members)))


class OneOfExtension(OpenApiSerializerExtension):  # type: ignore[no-untyped-call]
    """Documents a OneOfSerializer. No discriminator: a voucher body may omit its type."""

    target_class = "config.api.fields.OneOfSerializer"
    match_subclasses = True

    def map_serializer(self, auto_schema: Any, direction: Any) -> dict[str, Any]:
        return {
            "oneOf": [
                auto_schema.resolve_serializer(shape, direction).ref for shape in self.target.shapes
            ]
        }


def require_bodies(result: dict[str, Any], **kwargs: Any) -> dict[str, Any]:
    """Post-processing hook: no operation works without the body it documents."""
    for item in result["paths"].values():
        for operation in item.values():
            if "requestBody" in operation:
                operation["requestBody"]["required"] = True
    return result


def say_success(result: dict[str, Any], **kwargs: Any) -> dict[str, Any]:
    """Post-processing hook: `success` is true in every envelope and false in a failure.

    Said after the enums were given names, since one of these would be a name too many.
    """
    for name, schema in result["components"]["schemas"].items():
        if name == "Failure" or name.endswith("Envelope"):
            schema["properties"]["success"]["enum"] = [name != "Failure"]
    return result


class StrictBody(OpenApiSerializerExtension):  # type: ignore[no-untyped-call]
    """Documents that a request body refuses names it does not know."""

    target_class = "config.api.fields.StrictSerializer"
    match_subclasses = True

    def map_serializer(self, auto_schema: Any, direction: Any) -> dict[str, Any]:
        schema = auto_schema._map_serializer(self.target, direction, bypass_extensions=True)
        return {**schema, "additionalProperties": False}


_making = Lock()


def openapi_document() -> dict[str, Any]:
    """The document, made once per process: making it costs too much to do it for every caller."""
    with _making:  # drf-spectacular cannot make its first one in two threads at once
        return _make_document()


@cache
def _make_document() -> dict[str, Any]:
    generator = SchemaGenerator()  # type: ignore[no-untyped-call]
    document: dict[str, Any] = generator.get_schema(request=None, public=True)  # type: ignore[no-untyped-call]
    return document


def openapi_json(request: HttpRequest) -> HttpResponse:
    """GET /openapi.json: open to everyone, and the same for everyone."""
    if request.method not in ("GET", "HEAD"):
        return message_response(405, f'Method "{request.method}" not allowed.')
    return json_response(200, openapi_document())


class DocsView(SpectacularSwaggerSplitView):
    """GET /docs/: the document as a page, with nothing fetched from another host, and no script in
    the page itself: people type a key into it."""

    authentication_classes: list[Any] = []
    permission_classes: list[Any] = []
    throttle_classes: list[Any] = []
    http_method_names = ["get", "head"]
