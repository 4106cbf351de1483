"""The paths of company sign-in. config/urls.py includes them only if it is configured."""

from django.urls import path

from operators.sign_in.company import views

urlpatterns = [
    path("admin/login/", views.sign_in),  # replaces the admin's own
    path("admin/company/", views.start, name="company_sign_in"),
    path("admin/company/callback/", views.callback, name="company_sign_in_callback"),
]
