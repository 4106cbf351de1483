"""Registers the system checks; the API frame has no models of its own."""

from django.apps import AppConfig


class ConfigConfig(AppConfig):
    name = "config"
    verbose_name = "Service"

    def ready(self) -> None:
        from config import checks  # noqa: F401, PLC0415  registers them once apps are loaded
