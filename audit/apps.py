from django.apps import AppConfig


class AuditConfig(AppConfig):
    name = "audit"

    def ready(self) -> None:
        from audit.people import connect  # noqa: PLC0415  imports models

        connect()
