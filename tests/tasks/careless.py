"""The workers without a guard of theirs, for controls: `celery -A tests.tasks.careless worker`.

CARELESS says which: `acknowledges early`, or `locks nothing`.
"""

import os

from celery.signals import worker_process_init

from config.celery import app

CARELESS = os.environ["CARELESS"]

if CARELESS == "acknowledges early":
    app.conf.update(task_acks_late=False, task_reject_on_worker_lost=False)


@worker_process_init.connect
def lock_nothing(**kwargs: object) -> None:
    if CARELESS == "locks nothing":
        from django.db.models import QuerySet  # noqa: PLC0415

        QuerySet.select_for_update = lambda self: self  # type: ignore[method-assign, assignment, misc]
