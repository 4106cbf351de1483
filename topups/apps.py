from django.apps import AppConfig


class TopupsConfig(AppConfig):
    name = "topups"
    verbose_name = "Top-ups"
