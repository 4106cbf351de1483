from django.apps import AppConfig
from django.db.models.signals import post_migrate


class OperatorsConfig(AppConfig):
    name = "operators"

    def ready(self) -> None:
        # Their models are loaded only now.
        from operators.roles import make_roles  # noqa: PLC0415
        from operators.telegram.requests import queue_order  # noqa: PLC0415
        from topups.signals import fulfilment_moved, fulfilment_opened  # noqa: PLC0415

        post_migrate.connect(make_roles, dispatch_uid="operators.make_roles")
        fulfilment_opened.connect(queue_order, dispatch_uid="operators.queue_order")
        fulfilment_moved.connect(queue_order, dispatch_uid="operators.queue_order")
