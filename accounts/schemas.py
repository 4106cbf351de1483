"""What `GET /ping` answers."""

from typing import Any

from rest_framework import serializers


class PingSerializer(serializers.Serializer[Any]):
    """Who is calling, and how often they may."""

    client = serializers.CharField()
    server_time = serializers.DateTimeField()
    rate_limit_per_minute = serializers.IntegerField()
