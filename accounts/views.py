"""`GET /ping`: confirms that an API key works."""

from django.http import HttpResponse
from django.utils import timezone
from drf_spectacular.utils import extend_schema
from rest_framework.request import Request

from accounts.api_access.authentication import caller
from accounts.examples import PING
from accounts.schemas import PingSerializer
from core.api.openapi import documented, example
from core.api.views import ApiViewSet, ok


class PingViewSet(ApiViewSet):
    @extend_schema(
        operation_id="ping",
        summary="Check the API key",
        responses=documented(PingSerializer, examples=[example(PING)]),
    )
    def retrieve(self, request: Request) -> HttpResponse:
        """Confirms that the API key works."""
        client = caller(request)
        ping = {
            "client": client.name,
            "server_time": timezone.now(),
            "rate_limit_per_minute": client.rate_limit_per_minute,
        }
        return ok(PingSerializer(ping).data)
