"""GET /balance: the money in the wallet."""

from django.http import HttpResponse
from drf_spectacular.utils import extend_schema
from rest_framework.request import Request

from accounts.api_access.authentication import caller
from core.api.errors import ApiError, ErrorCode
from core.api.openapi import documented, example
from core.api.views import ApiViewSet, ok
from wallets.examples import BALANCE
from wallets.models import Wallet
from wallets.schemas import BalanceSerializer


class BalanceViewSet(ApiViewSet):
    @extend_schema(
        operation_id="balance",
        summary="Read the balance",
        responses=documented(
            BalanceSerializer,
            errors=[ErrorCode.CLIENT_WITHOUT_WALLET],
            examples=[example(BALANCE)],
        ),
    )
    def retrieve(self, request: Request) -> HttpResponse:
        """The balance of the wallet. `client_without_wallet` (409) if the API key has no wallet."""
        wallet = (
            Wallet.objects.filter(account=caller(request).account_id)
            .select_related("account")
            .first()
        )
        if wallet is None:
            raise ApiError(ErrorCode.CLIENT_WITHOUT_WALLET)
        balance = {"balance": wallet.balance, "currency": wallet.account.currency}
        return ok(BalanceSerializer(balance).data)
