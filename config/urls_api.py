"""The paths of an API process (config/settings_api.py)."""

from django.urls import include, path

from accounts.views import PingViewSet
from catalogue.views import ProductViewSet
from core.api.openapi import openapi_json
from core.api.paths import API_BASE
from core.http import error_messages
from core.http.readiness import healthz, readyz
from orders.views import OrderViewSet
from topups.views import TopUpProductViewSet
from wallets.views import BalanceViewSet

api_v1 = [  # Django tries them in this order: the busiest first
    path("orders", OrderViewSet.as_view({"get": "list", "post": "create"})),
    path("orders/<str:reference>", OrderViewSet.as_view({"get": "retrieve"})),
    path("ping", PingViewSet.as_view({"get": "retrieve"})),
    path("balance", BalanceViewSet.as_view({"get": "retrieve"})),
    path("products", ProductViewSet.as_view({"get": "list"})),
    path("products/<int:product>", ProductViewSet.as_view({"get": "retrieve"})),
    path("topup-products", TopUpProductViewSet.as_view({"get": "list"})),
    path("topup-products/<int:product>", TopUpProductViewSet.as_view({"get": "retrieve"})),
    path("openapi.json", openapi_json),
]

urlpatterns = [
    path(f"{API_BASE[1:]}/", include(api_v1)),
    path("healthz", healthz),
    path("readyz", readyz),
]

handler400 = error_messages.bad_request
handler403 = error_messages.permission_denied
handler404 = error_messages.not_found
handler500 = error_messages.server_error
