"""Tasks are queued and scheduled by name; each name is that of a task a worker knows."""

import ast
from collections.abc import Iterator
from itertools import pairwise

import pytest
from django.conf import settings

from config.celery import app
from embedded.environment import PROJECT

SCHEDULED = {entry["task"] for entry in settings.CELERY_BEAT_SCHEDULE.values()}


def names_queued() -> Iterator[str]:
    """The task's name in each `enqueue(...)` and `partial(enqueue, ...)` of the apps."""
    for path in PROJECT.glob("[a-z]*/**/*.py"):
        if path.parts[len(PROJECT.parts)] in ("tests", "var"):
            continue
        for call in ast.walk(ast.parse(path.read_text())):
            if not isinstance(call, ast.Call):
                continue
            words = [call.func, *call.args]
            for word, following in pairwise(words):
                if isinstance(word, ast.Name) and word.id == "enqueue":
                    yield str(ast.literal_eval(following))


def test_these_tasks_are_queued_by_name() -> None:
    assert set(names_queued()) == {
        "merchants.tasks.send_email",
        "operators.imports.tasks.run_import",
        "operators.telegram.tasks.show_order",
        "operators.upkeep.tasks.reconcile_now",
        "topups.tasks.refund_fulfilment",
    }


@pytest.mark.parametrize("name", sorted(SCHEDULED | set(names_queued())))
def test_a_worker_knows_the_task(name: str) -> None:
    app.loader.import_default_modules()

    assert name in app.tasks
