"""The authentication backend that sessions of company sign-in name."""

from typing import Any

from django.contrib.auth.backends import ModelBackend
from django.contrib.auth.models import User
from django.http import HttpRequest

from operators.sign_in.models import CompanyIdentity


class CompanyBackend(ModelBackend):
    """Loads the user of a session. It checks no password, and a session ends with its identity."""

    def authenticate(self, request: HttpRequest | None, **credentials: Any) -> None:  # type: ignore[override]
        return None

    def user_can_authenticate(self, user: Any) -> bool:
        return (
            super().user_can_authenticate(user)
            and isinstance(user, User)
            and CompanyIdentity.objects.filter(user=user).exists()
        )
