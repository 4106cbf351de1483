"""The response schema of `GET /balance` (contract, "Balance")."""

from typing import Any

from rest_framework import serializers

from core.api.serializer_fields import MoneyField


class BalanceSerializer(serializers.Serializer[Any]):
    """The money in the wallet."""

    balance = MoneyField(help_text="The amount that purchases can spend now. Read it as a decimal.")
    currency = serializers.CharField(help_text="The currency code of the wallet, such as `USD`.")
