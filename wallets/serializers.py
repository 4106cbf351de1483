"""What `GET /balance` answers."""

from typing import Any

from rest_framework import serializers

from config.api.fields import MoneyField


class BalanceSerializer(serializers.Serializer[Any]):
    """Contract, "Balance"."""

    balance = MoneyField()
    currency = serializers.CharField()
