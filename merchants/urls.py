"""The paths of the merchants' page, under /merchant/."""

from django.urls import path

from merchants.views import overview, sign_in

app_name = "merchants"

urlpatterns = [
    path("", overview.overview, name="overview"),
    path("sign-in/", sign_in.SignIn.as_view(), name="sign_in"),
    path("sign-out/", sign_in.sign_out, name="sign_out"),
]
