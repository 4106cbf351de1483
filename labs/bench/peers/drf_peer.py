"""The purchase in ordinary Django: a ModelSerializer, a generic view, the ORM, one transaction.

It has no rate limit and no encryption.
"""

import hashlib
import os
from typing import Any

import django

os.environ["DJANGO_SETTINGS_MODULE"] = "labs.bench.peers.drf_settings"
django.setup()

from django.core.handlers.wsgi import WSGIHandler  # noqa: E402
from django.db import transaction  # noqa: E402
from django.urls import path  # noqa: E402
from django.utils import timezone  # noqa: E402
from rest_framework import exceptions, generics, serializers, status  # noqa: E402
from rest_framework.authentication import BaseAuthentication  # noqa: E402
from rest_framework.permissions import IsAuthenticated  # noqa: E402
from rest_framework.request import Request  # noqa: E402
from rest_framework.response import Response  # noqa: E402
from ulid import ULID  # noqa: E402

from accounts.models import ApiClient, ApiKey  # noqa: E402
from catalogue.models import Shelf, VoucherCode  # noqa: E402
from idempotency.models import IdempotencyRecord  # noqa: E402
from orders.models import ClientCounter, Order  # noqa: E402
from wallets.models import LedgerEntry, Wallet  # noqa: E402


class KeyAuthentication(BaseAuthentication):
    """Authenticates the client by its bearer key."""

    def authenticate(self, request: Request) -> tuple[ApiClient, ApiKey]:
        key = request.headers.get("Authorization", "").removeprefix("Bearer ")
        digest = hashlib.sha256(key.encode()).hexdigest()
        found = ApiKey.objects.select_related("client__account").filter(
            prefix=key[3:15], digest=digest, revoked_at=None, client__enabled=True
        )
        live = found.first()
        if live is None:
            raise exceptions.AuthenticationFailed
        return live.client, live


class CodeSerializer(serializers.ModelSerializer[VoucherCode]):
    """A code, still sealed."""

    code = serializers.SerializerMethodField()

    class Meta:
        model = VoucherCode
        fields = ["code"]

    def get_code(self, code: VoucherCode) -> str:
        return bytes(code.sealed).hex()


class OrderSerializer(serializers.ModelSerializer[Order]):
    """Reads the body of a purchase, makes the purchase and renders its order."""

    product_id = serializers.IntegerField(source="shelf.product_id", min_value=1)
    quantity = serializers.IntegerField(min_value=1, max_value=100)
    variation_id = serializers.IntegerField(source="shelf.variation_id", read_only=True)
    codes = serializers.SerializerMethodField()

    class Meta:
        model = Order
        fields = [
            *("reference", "status", "product_id", "variation_id", "quantity", "units"),
            *("units_per_sale", "unit_price", "total_price", "currency", "created_at", "codes"),
        ]
        read_only_fields = [
            *("reference", "units_per_sale", "unit_price", "total_price", "currency", "created_at")
        ]

    def get_codes(self, order: Order) -> Any:
        codes = VoucherCode.objects.filter(order_id=order.pk).order_by("position")
        return CodeSerializer(codes, many=True).data

    def create(self, validated_data: dict[str, Any]) -> Order:
        client, record = self.context["request"].user, self.context["record"]
        quantity = validated_data["quantity"]
        shelf = (
            Shelf.objects.select_for_update(of=("self",))
            .select_related("product")
            .filter(product_id=validated_data["shelf"]["product_id"], variation=None)
            .first()
        )
        if shelf is None or not shelf.product.active or shelf.price is None:
            raise serializers.ValidationError({"product_id": ["There is no such product."]})
        unsold = VoucherCode.objects.select_for_update().filter(
            shelf=shelf, order_id=None, hold=None
        )
        codes = list(unsold.order_by("position")[:quantity])
        if len(codes) < quantity:
            raise serializers.ValidationError({"quantity": ["Not enough in stock."]})
        wallet = Wallet.objects.select_for_update().get(account=client.account)
        total = shelf.price * quantity
        if wallet.balance < total:
            raise serializers.ValidationError({"quantity": ["Not enough money."]})

        counter, _ = ClientCounter.objects.select_for_update().get_or_create(
            client=client, defaults={"orders": 0}
        )
        counter.orders += 1
        counter.save()
        order = Order.objects.create(
            reference=str(ULID()),
            client=client,
            number=counter.orders,
            shelf=shelf,
            quantity=quantity,
            units_per_sale=1,
            unit_price=shelf.price,
            total_price=total,
            currency=shelf.product.currency,
            codes_mac=bytes(32),
        )
        for code in codes:
            code.order_id = order.pk
            code.save(update_fields=["order_id"])
        shelf.available_stock -= quantity
        shelf.save(update_fields=["available_stock"])
        wallet.balance -= total
        wallet.save()
        LedgerEntry.objects.create(
            wallet=wallet,
            kind="purchase",
            counterpart="sales",
            amount=-total,
            balance_after=wallet.balance,
            order_reference=order.reference,
            actor=f"client:{client.pk}",
        )
        record.order_reference, record.bought_at = order.reference, timezone.now()
        record.save()
        return order


class OrderView(generics.CreateAPIView[Order]):
    """POST /orders"""

    authentication_classes = [KeyAuthentication]
    permission_classes = [IsAuthenticated]
    serializer_class = OrderSerializer

    def create(self, request: Request, *args: Any, **kwargs: Any) -> Response:
        fingerprint = hashlib.sha256(request.body).digest()
        record, created = IdempotencyRecord.objects.get_or_create(
            client_id=request.user.pk,
            key=request.headers["Idempotency-Key"],
            defaults={"fingerprint": fingerprint},
        )
        if not created:
            return self.replay(record, fingerprint)
        serializer = self.get_serializer(
            data=request.data, context={"request": request, "record": record}
        )
        serializer.is_valid(raise_exception=True)
        with transaction.atomic():
            serializer.save()
        answer = Response(serializer.data, status=status.HTTP_201_CREATED)
        record.response = self.finalize_response(request, answer).render().rendered_content
        record.save()
        return answer

    def replay(self, record: IdempotencyRecord, fingerprint: bytes) -> Response:
        raise exceptions.APIException("Replays are not implemented: only purchases are compared.")


urlpatterns = [path("api/v1/orders", OrderView.as_view())]
application = WSGIHandler()
