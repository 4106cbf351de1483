"""The settings of the service without the middleware that counts requests."""

from config.settings_api import *  # noqa: F403

MIDDLEWARE = [name for name in MIDDLEWARE if "request_metrics" not in name]  # noqa: F405
