"""Middleware of the merchant site."""

from accounts.second_factor import SecondFactorMiddleware


class MemberSecondFactorMiddleware(SecondFactorMiddleware):
    """Asks members for their second factor before it shows any other page of the merchant site."""

    prefix = "/merchant/"
    page = "merchants:two_factor"
    open_views = frozenset(
        f"merchants:{name}" for name in ("sign_in", "sign_out", "join", "ask_reset", "reset")
    )
