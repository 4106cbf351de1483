from django.apps import AppConfig


class MerchantsConfig(AppConfig):
    name = "merchants"

    def ready(self) -> None:
        from merchants.email.access_notices import connect  # noqa: PLC0415  imports models

        connect()
