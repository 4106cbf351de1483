from collections.abc import Sequence
from typing import Any

from django.apps import AppConfig
from django.contrib.admin.checks import check_admin_app
from django.core.checks import CheckMessage, Tags, register
from django.db.models.signals import post_migrate


def check_admin_pages(app_configs: Sequence[AppConfig] | None, **kwargs: Any) -> list[CheckMessage]:
    """Django's checks of the admin, with its pages loaded (config/settings.py, INSTALLED_APPS)."""
    import operators.admin  # noqa: F401, PLC0415  registers them

    return list(check_admin_app(app_configs, **kwargs))


class OperatorsConfig(AppConfig):
    name = "operators"

    def ready(self) -> None:
        # These modules import models, which Django has loaded only now.
        from operators.roles import make_roles  # noqa: PLC0415
        from operators.telegram.announcement_requests import queue_order  # noqa: PLC0415
        from topups.signals import fulfilment_moved, fulfilment_opened  # noqa: PLC0415

        register(check_admin_pages, Tags.admin)
        post_migrate.connect(make_roles, dispatch_uid="operators.make_roles")
        fulfilment_opened.connect(queue_order, dispatch_uid="operators.queue_order")
        fulfilment_moved.connect(queue_order, dispatch_uid="operators.queue_order")
