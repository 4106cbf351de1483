"""The settings of the new version in the upgrade test: those of the service, and one more app."""

from config.settings import *  # noqa: F403
from config.settings import INSTALLED_APPS

INSTALLED_APPS = [*INSTALLED_APPS, "labs.upgrade.rehearsal"]
IDEMPOTENCY_IN_PROGRESS_SECONDS = 2  # so that nobody waits for five minutes
