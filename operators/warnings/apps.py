"""Names the app."""

from django.apps import AppConfig


class WarningsConfig(AppConfig):
    name = "operators.warnings"
    label = "warnings"
