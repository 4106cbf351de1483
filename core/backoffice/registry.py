"""Collects what the installed apps declare for the back office.

It finds each app's module `backoffice` when it is first asked. So a reader imports no app, and a
process that reads nothing, such as one of the API, loads none of these modules.
"""

from functools import cache
from importlib import import_module

from django.apps import apps
from django.utils.module_loading import module_has_submodule

from core.backoffice.declarations import BackOffice, Report, Sealed, Watch


@cache
def back_offices() -> list[BackOffice]:
    """The declarations of the installed apps, from the lowest layer up, as INSTALLED_APPS does."""
    return [
        import_module(f"{app.name}.backoffice").BACK_OFFICE
        for app in apps.get_app_configs()
        if app.module and module_has_submodule(app.module, "backoffice")
    ]


def declared_rights() -> dict[str, str]:
    """The rights of the service's role, by table or sequence."""
    return {name: right for app in back_offices() for name, right in app.rights.items()}


def reports() -> dict[str, Report]:
    """The reports by email, by their kind."""
    return {report.kind: report for app in back_offices() for report in app.reports}


def watches() -> dict[str, Watch]:
    """The watches of the installed apps, by kind."""
    return {watch.kind: watch for app in back_offices() for watch in app.watches}


def sealed_columns() -> list[Sealed]:
    """The columns of sealed values."""
    return [column for app in back_offices() for column in app.sealed]
