"""The scheduler of periodic tasks, for `celery -A config beat`."""

from typing import Any

from celery.beat import PersistentScheduler


class Scheduler(PersistentScheduler):
    """Celery's scheduler, which goes on after the clock of its host was set back.

    Celery waits until the interval of a task has passed since its last run. A clock that was ahead
    and is set right leaves that run in the future, in memory and in the schedule file, and nothing
    would be queued until then: no refund of a lost task, no announcement, no alert.
    """

    def tick(self, *args: Any, **kwargs: Any) -> float:
        """Queues at most one task that is due; returns the seconds until the next one."""
        was_set_back = False
        for entry in self.schedule.values():
            now = entry.default_now()
            if (entry.last_run_at or now) > now:
                entry.last_run_at = now
                was_set_back = True
        if was_set_back:
            self.populate_heap()  # the order of the tasks that are due, from the entries
        return super().tick(*args, **kwargs)
