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
    top_up_products,
    staff,
    system,
    telegram,
)

__all__ = [
    "catalogue",
    "codes",
    "desk",
    "members",
    "merchants",
    "money",
    "orders",
    "top_up_products",
    "staff",
    "system",
    "telegram",
]

# Second factors are enrolled by their owners (operators/two_factor.py); nobody reads their secrets.
admin.site.unregister([StaticDevice, TOTPDevice])
