"""The names of our models and their fields, as pages show them: in the language of the reader."""

from collections.abc import Iterator
from typing import Any

from django.apps import apps
from django.conf import settings
from django.db.models import Model

from core.texts import english, lazy


def translate_names() -> None:
    """Makes the names lazy. Migrations keep the names that the models declare."""
    for model in apps.get_models():
        if (settings.BASE_DIR / model.__module__.partition(".")[0]).is_dir():  # only our own
            for owner, attribute in owners_of_names(model):
                setattr(owner, attribute, lazy(english(getattr(owner, attribute))))


def owners_of_names(model: type[Model]) -> Iterator[tuple[Any, str]]:
    """The model's options and fields, each with an attribute that holds a name."""
    meta = model._meta
    yield from ((meta, "verbose_name"), (meta, "verbose_name_plural"))
    for field in (*meta.fields, *meta.many_to_many):
        yield field, "verbose_name"
