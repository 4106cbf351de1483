"""The response schema of `GET /balance` (contract, "Balance")."""

from typing import Any

from rest_framework import serializers

from config.api.serializer_fields import MoneyField


class BalanceSerializer(serializers.Serializer[Any]):
    """The money in the wallet."""

    balance = MoneyField()
    currency = serializers.CharField()
