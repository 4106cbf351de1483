"""The broker and worker fixtures of tests/tasks."""

from tests.tasks.conftest import broker, crew

__all__ = ["broker", "crew"]
