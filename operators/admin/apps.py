"""Registers the system checks of the admin pages, and makes the groups of staff."""

from collections.abc import Sequence
from typing import Any

from django.apps import AppConfig
from django.contrib.admin.checks import check_admin_app
from django.core.checks import CheckMessage, Tags, register
from django.db.models.signals import post_migrate


def check_admin_pages(app_configs: Sequence[AppConfig] | None, **kwargs: Any) -> list[CheckMessage]:
    """Django's checks of the admin, with its pages loaded (config/settings.py, INSTALLED_APPS)."""
    import operators.admin.site  # noqa: F401, PLC0415  registers them

    return list(check_admin_app(app_configs, **kwargs))


class BackOfficeConfig(AppConfig):
    name = "operators.admin"
    label = "back_office"  # `admin` is Django's

    def ready(self) -> None:
        from operators.staff.roles import make_roles  # noqa: PLC0415  imports models

        register(check_admin_pages, Tags.admin)
        post_migrate.connect(make_roles, dispatch_uid="back_office.make_roles")
