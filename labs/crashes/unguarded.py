"""Workers without one of their guards, for control tests.

`celery -A labs.crashes.unguarded worker` with REMOVED_GUARD=`late acknowledgement` or `row locks`.
"""

import os

from celery.signals import worker_process_init

from config.celery import app

REMOVED_GUARD = os.environ["REMOVED_GUARD"]

if REMOVED_GUARD == "late acknowledgement":
    app.conf.update(task_acks_late=False, task_reject_on_worker_lost=False)


@worker_process_init.connect
def remove_row_locks(**kwargs: object) -> None:
    if REMOVED_GUARD == "row locks":
        from django.db.models import QuerySet  # noqa: PLC0415

        QuerySet.select_for_update = lambda self: self  # type: ignore[method-assign, assignment, misc]
