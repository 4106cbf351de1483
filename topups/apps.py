from django.apps import AppConfig


class TopupsConfig(AppConfig):
    name = "topups"
