"""The names of our models and their fields, as pages show them: in the language of the reader."""

from collections.abc import Iterator
from typing import Any

from django.apps import apps
from django.conf import settings
from django.db.models import Model
from django.utils.functional import Promise

from core.texts import lazy


def our_models() -> Iterator[type[Model]]:
    """The models of this project, without those of packages."""
    for model in apps.get_models():
        if (settings.BASE_DIR / model.__module__.partition(".")[0]).is_dir():
            yield model


def names_of(model: type[Model]) -> Iterator[tuple[Any, str, str]]:
    """What has a name in English: the owner of the name, its attribute, and the name."""
    meta = model._meta
    named = [(meta, "verbose_name"), (meta, "verbose_name_plural")]
    named += [(field, "verbose_name") for field in (*meta.fields, *meta.many_to_many)]
    for owner, attribute in named:
        name = getattr(owner, attribute)
        if not isinstance(name, Promise):
            yield owner, attribute, name


def translate_names() -> None:
    """Makes the names lazy. Migrations keep the names that the models declare."""
    for model in our_models():
        for owner, attribute, name in names_of(model):
            setattr(owner, attribute, lazy(name))
