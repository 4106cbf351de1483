"""What `GET /balance` answers."""

from typing import Any

from rest_framework import serializers

from config.api.fields import MoneyField


class BalanceSerializer(serializers.Serializer[Any]):
    """What is left in the wallet."""

    balance = MoneyField()
    currency = serializers.CharField()
