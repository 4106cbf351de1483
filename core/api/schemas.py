"""The response schemas that all endpoints share: failures, messages and pagination."""

from typing import Any

from rest_framework import serializers

from core.api.errors import ErrorCode, RefusalReason
from core.api.pagination import MAX_PER_PAGE

SUCCESS = "Whether the request succeeded. Check it first."


class ErrorSerializer(serializers.Serializer[Any]):
    """Why the request failed. Branch on `code`; show `message` to people."""

    code = serializers.ChoiceField(
        [code.value for code in ErrorCode], help_text="The stable code that programs branch on."
    )
    message = serializers.CharField(help_text="Text for people. Its wording can change.")
    reason = serializers.ChoiceField(
        [reason.value for reason in RefusalReason],
        required=False,
        allow_null=True,
        help_text="The cause of an `order_refused`. Without it the cause is unknown: do not retry"
        " automatically.",
    )
    fields = serializers.DictField(  # type: ignore[assignment]  # the contract's name
        child=serializers.ListField(child=serializers.CharField()),
        required=False,
        help_text="With `validation_failed`: what is wrong, by the name of the field.",
    )
    reference = serializers.CharField(
        required=False,
        help_text="With `request_abandoned`: the order to read. Do not buy again. If it is not"
        " found, a restore of the service's database lost it: contact support with the reference.",
    )
    merchant_reference = serializers.CharField(
        required=False,
        help_text="With `product_reference_not_found`: the reference as it was received.",
    )
    retry_after_seconds = serializers.IntegerField(
        required=False, min_value=1, help_text="With `rate_limited`: how many seconds to wait."
    )
    recovery = serializers.DictField(
        child=serializers.CharField(),
        required=False,
        help_text="Reserved for advice on recovery, by name.",
    )


class FailureSerializer(serializers.Serializer[Any]):
    """A failure produced by the API."""

    success = serializers.BooleanField(help_text=SUCCESS)
    error = ErrorSerializer(help_text="Why the request failed.")


class MessageSerializer(serializers.Serializer[Any]):
    """A request that was rejected before it reached the API. The body has no `success`."""

    message = serializers.CharField(
        help_text="Text for people. Check the path and the method of your request."
    )


class PaginationSerializer(serializers.Serializer[Any]):
    """The position of this page in the whole list."""

    page = serializers.IntegerField(min_value=1, help_text="The number of this page, from 1.")
    per_page = serializers.IntegerField(
        min_value=1, max_value=MAX_PER_PAGE, help_text="The largest number of items on a page."
    )
    total = serializers.IntegerField(min_value=0, help_text="Number of items on all pages.")
    last_page = serializers.IntegerField(
        min_value=1, help_text="The number of the last page; 1 for an empty list."
    )
