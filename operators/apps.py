from django.apps import AppConfig
from django.db.models.signals import post_migrate


class OperatorsConfig(AppConfig):
    name = "operators"

    def ready(self) -> None:
        from operators.roles import make_roles  # noqa: PLC0415  its models are loaded only now

        post_migrate.connect(make_roles, dispatch_uid="operators.make_roles")
