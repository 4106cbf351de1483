"""The response schema of `GET /balance` (contract, "Balance")."""

from typing import Any

from rest_framework import serializers

from core.api.serializer_fields import MoneyField


class BalanceSerializer(serializers.Serializer[Any]):
    """The money in the wallet."""

    balance = MoneyField(
        help_text="The amount in the wallet. Purchases can spend it, up to the client's spending"
        " limit. Read it as a decimal."
    )
    currency = serializers.CharField(help_text="The currency code of the wallet, such as `USD`.")
