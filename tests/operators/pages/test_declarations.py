"""The back office collects what every app declares about itself."""

from importlib import import_module
from pathlib import Path

from django.apps import apps
from django.conf import settings

from core.backoffice.registry import back_offices
from operators.upkeep.reconcile import CHECKS, COUNTED, TRIGGERS, WARNINGS

# They declare nothing: no table, no right, no entry of the menu.
WITHOUT = {"operators.frame"}
OURS = [
    app.name
    for app in apps.get_app_configs()
    if settings.BASE_DIR in Path(app.path).parents
    and ".venv" not in Path(app.path).parts
    and app.name not in WITHOUT
]


def test_the_back_office_collects_every_app() -> None:
    assert [import_module(f"{app}.backoffice").BACK_OFFICE for app in OURS] == back_offices()


def test_no_name_is_declared_twice() -> None:
    names = [check.name for check in (*CHECKS, *WARNINGS)]

    assert len(names) == len(set(names))
    assert len(TRIGGERS) == len(set(TRIGGERS))
    assert len(COUNTED) == sum(len(app.counted) for app in back_offices())
