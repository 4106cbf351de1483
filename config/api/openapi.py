"""The OpenAPI document: what drf-spectacular cannot know of envelope, errors and key."""

from functools import cache
from typing import Any

from drf_spectacular.extensions import OpenApiAuthenticationExtension
from drf_spectacular.renderers import OpenApiJsonRenderer
from drf_spectacular.utils import OpenApiParameter, inline_serializer
from drf_spectacular.views import SpectacularAPIView
from rest_framework import serializers

from config.errors import ErrorCode, RefusalReason

SerializerClass = type[serializers.Serializer[Any]]

PAGE_PARAMETERS = [
    OpenApiParameter("page", int, description="From 1; a bad value means 1."),
    OpenApiParameter("per_page", int, description="Clamped to 1..100."),
]


class ErrorSerializer(serializers.Serializer[Any]):
    """Contract, "Error object"."""

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
    """Contract, "Pagination"."""

    page = serializers.IntegerField(min_value=1)
    per_page = serializers.IntegerField(min_value=1, max_value=100)
    total = serializers.IntegerField(min_value=0)
    last_page = serializers.IntegerField(min_value=1)


def answers(
    serializer: SerializerClass, *, status: int = 200, errors: tuple[int, ...] = ()
) -> dict[int, Any]:
    """The documented answers of an endpoint: its success in the envelope, and its failures.

    401, 403 and 429 go without saying; `errors` adds statuses of its own.
    """
    failures = dict.fromkeys(sorted((401, 403, 429, *errors)), FailureSerializer)
    return {status: _envelope_of(serializer), **failures}


@cache
def _envelope_of(serializer: SerializerClass) -> SerializerClass:
    name = serializer.__name__.removesuffix("Serializer")
    return type(
        inline_serializer(
            f"{name}Envelope", {"success": serializers.BooleanField(), "data": serializer()}
        )
    )


@cache
def page_of(serializer: SerializerClass) -> SerializerClass:
    """The serializer of a list answer's `data`."""
    name = serializer.__name__.removesuffix("Serializer")
    page = inline_serializer(
        f"{name}Page", {"items": serializer(many=True), "pagination": PaginationSerializer()}
    )
    return type(page)


class BearerScheme(OpenApiAuthenticationExtension):  # type: ignore[no-untyped-call]
    """Tells the document that every endpoint wants the bearer key."""

    target_class = "accounts.authentication.BearerAuthentication"
    name = "bearerAuth"

    def get_security_definition(self, auto_schema: Any) -> dict[str, str]:
        return {"type": "http", "scheme": "bearer"}


class OpenApiView(SpectacularAPIView):
    """GET /openapi.json: open to everyone, and the same for everyone."""

    renderer_classes = [OpenApiJsonRenderer]
    authentication_classes: list[Any] = []
    permission_classes: list[Any] = []
    throttle_classes: list[Any] = []
