"""The shapes of an answer (contract, "Response envelope"); nobody else builds them."""

from typing import Any

from django.http import HttpResponse

from config.api.errors import ApiError
from config.api.json import dumps

API_PREFIX = "/api/"


def success(data: Any) -> dict[str, Any]:
    """The body of a success."""
    return {"success": True, "data": data}


def failure(error: ApiError) -> dict[str, Any]:
    """The body of a failure produced by the API."""
    return {
        "success": False,
        "error": {"code": error.code.value, "message": error.message, **error.extra},
    }


def message_response(status: int, message: str) -> HttpResponse:
    """The `{message}` answer to what never reached the API: no `success`, no `error.code`."""
    return json_response(status, {"message": message})


def failure_response(error: ApiError) -> HttpResponse:
    """The whole HTTP answer to a failure, for places outside a DRF view."""
    return json_response(error.code.status, failure(error))


def json_response(status: int, body: Any) -> HttpResponse:
    """An HTTP answer with a JSON body."""
    return HttpResponse(dumps(body), status=status, content_type="application/json")
