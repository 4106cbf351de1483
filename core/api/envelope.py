"""Builds every response body: success, failure and message (contract, "Response envelope")."""

from typing import Any

from django.http import HttpResponse

from core.api.errors import ApiError
from core.json_output import dumps


def success(data: Any) -> dict[str, Any]:
    """The body of a success: `{success: true, data}`."""
    return {"success": True, "data": data}


def failure(error: ApiError) -> dict[str, Any]:
    """The body of a failure produced by the API: `{success: false, error}`."""
    return {
        "success": False,
        "error": {"code": error.code.value, "message": error.message, **error.extra},
    }


def message_response(status: int, message: str) -> HttpResponse:
    """The `{message}` response to a request that is rejected before it reaches the API."""
    return json_response(status, {"message": message})


def failure_response(error: ApiError) -> HttpResponse:
    """A failure as an HTTP response, for code outside DRF views."""
    return json_response(error.code.status, failure(error))


def json_response(status: int, body: Any) -> HttpResponse:
    """An HTTP response with a JSON body."""
    return HttpResponse(dumps(body), status=status, content_type="application/json")
