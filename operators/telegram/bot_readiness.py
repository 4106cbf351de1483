"""The probe of the bot."""

from http import HTTPStatus

from django.http import HttpRequest, HttpResponse

from config.api.envelope import json_response
from config.api.views import get_only
from operators.telegram.bot_health import read_health


@get_only
def readyz_bot(request: HttpRequest) -> HttpResponse:
    """GET /readyz/bot: 200 while the bot reaches Telegram, otherwise 503."""
    try:
        health = read_health()
    except Exception:  # the probe answers even without a cache
        health = None
    if health is None:
        return json_response(HTTPStatus.SERVICE_UNAVAILABLE, {"status": "unready"})
    return json_response(HTTPStatus.OK, {"status": "ok", **health})
