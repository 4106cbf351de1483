"""The settings of the service without request records."""

from config.settings_api import *  # noqa: F403

MIDDLEWARE = [name for name in MIDDLEWARE if "request_records" not in name]  # noqa: F405
