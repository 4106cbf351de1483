"""Registers the system checks. The app has one model: the encryption keys."""

from django.apps import AppConfig


class ConfigConfig(AppConfig):
    name = "config"
    verbose_name = "Service"

    def ready(self) -> None:
        from config import checks  # noqa: F401, PLC0415  the import registers the checks
