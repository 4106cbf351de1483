"""Finds variables of the environment that are misspelt: nothing would read them, and the service
would start with a default."""

from difflib import get_close_matches

from core.environment.env import KNOWN

OURS = (
    *("CODE_ENCRYPTION_", "COMPANY_SIGN_IN_", "DESK_", "DJANGO_", "MERCHANT_SESSION_"),
    *("PRICE_FALL_", "PURCHASE_LOG_", "RETENTION_", "STAFF_SESSION_"),
)
# Django, its tools and tools of deployments read these themselves.
OF_OTHERS = (
    *("DJANGO_SETTINGS_MODULE", "DJANGO_SUPERUSER_", "DJANGO_ALLOW_ASYNC_UNSAFE", "DJANGO_COLORS"),
    *("DJANGO_AUTO_COMPLETE", "DJANGO_RUNSERVER_HIDE_WARNING", "DJANGO_TEST_PROCESSES"),
    *("OTEL_", "SERVICE_DATABASE_URL"),
)
LIKENESS = 0.85  # of two names, from 0 to 1


def is_misspelt(name: str) -> bool:
    """Whether the name looks like one of the service and is none, in its case or its letters."""
    known = name.removesuffix("_FILE")
    if known in KNOWN or name.startswith(OF_OTHERS):
        return False
    return name.upper().startswith(OURS) or closest(name) is not None


def closest(name: str) -> str | None:
    """The variable of the service that was probably meant."""
    names = get_close_matches(name.upper().removesuffix("_FILE"), KNOWN, n=1, cutoff=LIKENESS)
    return names[0] if names else None
