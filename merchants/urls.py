"""The paths of the merchants' page, under /merchant/."""

from django.urls import path, re_path

from merchants.views import orders, overview, sign_in, wallet

app_name = "merchants"

urlpatterns = [
    path("", overview.overview, name="overview"),
    path("sign-in/", sign_in.SignIn.as_view(), name="sign_in"),
    path("sign-out/", sign_in.sign_out, name="sign_out"),
    path("wallet/", wallet.wallet, name="wallet"),
    re_path(r"^wallet/statement\.(?P<format>csv|json)$", wallet.export, name="statement_export"),
    path("orders/", orders.orders, name="orders"),
    path("orders/<str:reference>/", orders.order, name="order"),
]
