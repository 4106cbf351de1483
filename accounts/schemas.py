"""The answer of `GET /ping`."""

from typing import Any

from rest_framework import serializers


class PingSerializer(serializers.Serializer[Any]):
    """The calling client and its rate limit."""

    client = serializers.CharField()
    server_time = serializers.DateTimeField()
    rate_limit_per_minute = serializers.IntegerField()
