"""Middleware of the merchant site."""

from django.contrib.auth.models import User

from accounts.sign_in.second_factor import SecondFactorMiddleware
from merchants.people.members import must_have_factor


class MemberSecondFactorMiddleware(SecondFactorMiddleware):
    """Asks members for their second factor before it shows any other page of the merchant site.

    Members who must have one and have none can only set it up, or sign out.
    """

    prefix = "/merchant/"
    page = "merchants:two_factor"
    enrol_page = "merchants:two_factor_on"
    open_views = frozenset(
        f"merchants:{name}" for name in ("sign_in", "sign_out", "join", "ask_reset", "reset")
    )

    def must_have_factor(self, user: User) -> bool:
        return must_have_factor(user)
