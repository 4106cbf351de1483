from django.apps import AppConfig


class OperatorsConfig(AppConfig):
    name = "operators"
