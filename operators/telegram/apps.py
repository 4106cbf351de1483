"""An app without models, so that API processes can announce orders without the back office."""

from django.apps import AppConfig

from operators.telegram.order_tasks import queue_order
from topups.signals import fulfilment_moved, fulfilment_opened, fulfilment_refunded


class TelegramConfig(AppConfig):
    name = "operators.telegram"

    def ready(self) -> None:
        fulfilment_opened.connect(queue_order, dispatch_uid="operators.queue_order")
        fulfilment_moved.connect(queue_order, dispatch_uid="operators.queue_order")
        fulfilment_refunded.connect(queue_order, dispatch_uid="operators.queue_order")
