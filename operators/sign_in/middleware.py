"""Middleware of the back office."""

from django.contrib.auth.models import User

from accounts.sign_in.second_factor import SecondFactorMiddleware, needs_factor


class StaffSecondFactorMiddleware(SecondFactorMiddleware):
    """Asks staff for their second factor before it shows any other page of the back office.

    Staff who need one and have none can only set it up, or sign out.
    """

    prefix = "/admin/"
    page = "two_factor"
    enrol_page = "two_factor_enrol"
    open_views = frozenset(
        {
            "admin:login",
            "admin:logout",
            "otp_webauthn:credential-authentication-begin",
            "otp_webauthn:credential-authentication-complete",
            "otp_webauthn:js-i18n-catalog",
        }
    )

    def must_have_factor(self, user: User) -> bool:
        return needs_factor(user)
