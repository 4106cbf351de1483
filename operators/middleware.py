"""What every page of the back office passes."""

from accounts.second_factor import SecondFactorMiddleware


class StaffSecondFactorMiddleware(SecondFactorMiddleware):
    """Asks staff for their second factor before any other page of the back office."""

    prefix = "/admin/"
    page = "two_factor"
    open_views = frozenset({"admin:login", "admin:logout"})
