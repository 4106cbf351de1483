"""Every path the service answers."""

from django.contrib import admin
from django.urls import include, path

from accounts.views import PingViewSet
from catalogue.views import ProductViewSet
from config.api.openapi import DocsView, openapi_json
from config.api.paths import API_BASE
from config.http import error_pages
from config.http.health import healthz, readyz
from operators.admin import second_factor
from operators.admin.desk_pages import entrance
from operators.admin.password import change_password
from operators.admin.telegram_link import link as link_telegram
from operators.telegram.bot_health import readyz_bot
from operators.worker_health import readyz_worker
from orders.views import OrderViewSet
from topups.views import TopUpProductViewSet
from wallets.views import BalanceViewSet

api_v1 = [
    path("ping", PingViewSet.as_view({"get": "retrieve"})),
    path("balance", BalanceViewSet.as_view({"get": "retrieve"})),
    path("products", ProductViewSet.as_view({"get": "list"})),
    path("products/<int:product>", ProductViewSet.as_view({"get": "retrieve"})),
    path("topup-products", TopUpProductViewSet.as_view({"get": "list"})),
    path("topup-products/<int:product>", TopUpProductViewSet.as_view({"get": "retrieve"})),
    path("orders", OrderViewSet.as_view({"get": "list", "post": "create"})),
    path("orders/<str:reference>", OrderViewSet.as_view({"get": "retrieve"})),
    path("openapi.json", openapi_json, name="openapi"),
]

urlpatterns = [
    path(f"{API_BASE[1:]}/", include(api_v1)),
    path("docs/", DocsView.as_view(url_name="openapi"), name="docs"),
    path("admin/two-factor/", admin.site.admin_view(second_factor.check), name="two_factor"),
    path(
        "admin/two-factor/enrol/",
        admin.site.admin_view(second_factor.enrol),
        name="two_factor_enrol",
    ),
    path("admin/telegram/", admin.site.admin_view(link_telegram), name="telegram_link"),
    path("admin/password_change/", admin.site.admin_view(change_password)),
    path("admin/", entrance),  # replaces the admin's own index page
    path("admin/", admin.site.urls),
    path("merchant/", include("merchants.urls")),
    path("healthz", healthz),
    path("readyz", readyz),
    path("readyz/bot", readyz_bot),
    path("readyz/worker", readyz_worker),
]

handler400 = error_pages.bad_request
handler403 = error_pages.permission_denied
handler404 = error_pages.not_found
handler500 = error_pages.server_error
