"""A worker of files with a task that sleeps, as one that builds a large file."""

import time

from config.celery import app


@app.task(name="labs.sleep", acks_late=False)  # as merchants.tasks.build_file
def sleep(seconds: float) -> None:
    time.sleep(seconds)
