"""The probe of the bot."""

from http import HTTPStatus

from django.http import HttpRequest, HttpResponse

from core.api.envelope import json_response
from core.api.views import get_only
from operators.telegram.bot_health import seconds_since_beat


@get_only
def readyz_bot(request: HttpRequest) -> HttpResponse:
    """GET /readyz/bot: 200 while the bot reaches Telegram, otherwise 503."""
    try:
        seconds_ago = seconds_since_beat()
    except Exception:  # the probe answers even without a cache
        seconds_ago = None
    if seconds_ago is None:
        return json_response(HTTPStatus.SERVICE_UNAVAILABLE, {"status": "unready"})
    return json_response(HTTPStatus.OK, {"status": "ok", "seconds_ago": seconds_ago})
