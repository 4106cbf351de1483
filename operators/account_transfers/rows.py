"""Rows as JSON, and back. Every column is carried, also one that is added later."""

from collections.abc import Iterator, Mapping
from itertools import islice
from typing import Any, TypeVar

from django.db.models import Model

Row = Mapping[str, Any]
AnyModel = TypeVar("AnyModel", bound=Model)
Item = TypeVar("Item")
ROWS_AT_ONCE = 500


def as_row(instance: Model, *left_out: str) -> dict[str, Any]:
    """The columns of a row as JSON values, without its id and what is `left_out`."""
    return {
        field.attname: None
        if field.value_from_object(instance) is None
        else field.value_to_string(instance)
        for field in instance._meta.concrete_fields
        if not field.primary_key and field.attname not in left_out
    }


def from_row(model: type[AnyModel], row: Row, **ours: Any) -> AnyModel:
    """A new instance with these columns; `ours` are those of this cell."""
    fields = {field.attname: field for field in model._meta.concrete_fields}
    return model(**{name: fields[name].to_python(value) for name, value in row.items()}, **ours)


def batches(rows: Iterator[Item]) -> Iterator[list[Item]]:
    """The rows in lists of at most ROWS_AT_ONCE."""
    while batch := list(islice(rows, ROWS_AT_ONCE)):
        yield batch
