"""The paths of the merchants' page, under /merchant/."""

from django.urls import path, re_path

from merchants.views import docs, orders, overview, sign_in, wallet

app_name = "merchants"

urlpatterns = [
    path("", overview.overview, name="overview"),
    path("sign-in/", sign_in.SignIn.as_view(), name="sign_in"),
    path("sign-out/", sign_in.sign_out, name="sign_out"),
    path("wallet/", wallet.wallet, name="wallet"),
    re_path(r"^wallet/statement\.(?P<format>csv|json)$", wallet.export, name="statement_export"),
    path("wallet/alert/", wallet.alert, name="alert"),
    path("wallet/spend/", wallet.spend, name="spend"),
    path("orders/", orders.orders, name="orders"),
    path("orders/<str:reference>/", orders.order, name="order"),
    path("docs/", docs.start, name="docs"),
    path("docs/retries/", docs.retries, name="docs_retries"),
    path("docs/top-ups/", docs.topups, name="docs_topups"),
    path("docs/request-abandoned/", docs.abandoned, name="docs_abandoned"),
    path("docs/snippets/<str:name>", docs.snippet_file, name="docs_snippet"),
]
