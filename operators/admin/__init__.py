"""The back office for staff, one module per area of work."""

from django.contrib import admin
from django_otp.plugins.otp_static.models import StaticDevice
from django_otp.plugins.otp_totp.models import TOTPDevice

from operators.admin import (
    catalogue,
    codes,
    desk,
    members,
    merchants,
    money,
    orders,
    staff,
    system,
    telegram,
    top_up_products,
)

__all__ = [
    "catalogue",
    "codes",
    "desk",
    "members",
    "merchants",
    "money",
    "orders",
    "staff",
    "system",
    "telegram",
    "top_up_products",
]

# People enrol their own second factor (accounts/second_factor.py); nobody reads its secret.
admin.site.unregister([StaticDevice, TOTPDevice])
