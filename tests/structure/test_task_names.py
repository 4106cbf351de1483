"""Tasks are queued and scheduled by name; each name is that of a task a worker knows."""

import ast
from functools import cache
from itertools import pairwise

from django.conf import settings

from config.celery import app
from embedded.environment import PROJECT

SCHEDULED = {entry["task"] for entry in settings.CELERY_BEAT_SCHEDULE.values()}


@cache
def names_queued() -> frozenset[str]:
    """The task's name in each `enqueue(...)` and `partial(enqueue, ...)` of the apps."""
    names = set()
    for path in PROJECT.glob("[a-z]*/**/*.py"):
        if path.parts[len(PROJECT.parts)] in ("tests", "var"):
            continue
        for call in ast.walk(ast.parse(path.read_text())):
            if not isinstance(call, ast.Call):
                continue
            words = [call.func, *call.args]
            for word, following in pairwise(words):
                if isinstance(word, ast.Name) and word.id == "enqueue":
                    names.add(str(ast.literal_eval(following)))
    return frozenset(names)


def test_these_tasks_are_queued_by_name() -> None:
    assert names_queued() == {
        "merchants.tasks.build_file",
        "merchants.tasks.send_email",
        "operators.imports.tasks.run_import",
        "operators.telegram.tasks.send_test_messages",
        "operators.telegram.tasks.show_order",
        "operators.upkeep.tasks.reconcile_now",
        "topups.tasks.refund_fulfilment",
    }


def test_a_worker_knows_these_tasks() -> None:
    app.loader.import_default_modules()

    assert SCHEDULED
    assert (SCHEDULED | names_queued()) - set(app.tasks) == set()
