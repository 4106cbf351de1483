"""A task that occupies a worker of files for as long as a large file does."""

import time

from config.celery import app


@app.task(name="labs.sleep", acks_late=False)  # as merchants.tasks.build_file
def sleep(seconds: float) -> None:
    time.sleep(seconds)
