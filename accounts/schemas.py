"""The response schema of `GET /ping` (contract, "Ping")."""

from typing import Any

from rest_framework import serializers


class PingSerializer(serializers.Serializer[Any]):
    """The calling client and its rate limit."""

    client = serializers.CharField(help_text="The name of the client that the API key belongs to.")
    server_time = serializers.DateTimeField(help_text="The time of the service, in UTC.")
    rate_limit_per_minute = serializers.IntegerField(
        min_value=1,
        help_text="Requests per minute that this client may send, over all its API keys. All"
        " clients of an account together have a common limit, too: five times the default of"
        " one client.",
    )
