"""The secret keys that may have signed what Telegram returns to us."""

from django.conf import settings


def accepted_secret_keys() -> list[str]:
    """SECRET_KEY, which signs, and then the other keys that are accepted."""
    return [settings.SECRET_KEY, *settings.SECRET_KEY_FALLBACKS]
