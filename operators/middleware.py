"""Middleware of the back office."""

from accounts.second_factor import SecondFactorMiddleware


class StaffSecondFactorMiddleware(SecondFactorMiddleware):
    """Asks staff for their second factor before it shows any other page of the back office."""

    prefix = "/admin/"
    page = "two_factor"
    open_views = frozenset({"admin:login", "admin:logout"})
