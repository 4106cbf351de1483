"""A worker that acknowledges a message when it receives it, for a control test."""

from config.celery import app

app.conf.update(task_acks_late=False, task_reject_on_worker_lost=False)
