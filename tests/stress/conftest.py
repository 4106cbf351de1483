"""The same broker and workers as the tests of tasks."""

from tests.tasks.conftest import broker, crew

__all__ = ["broker", "crew"]
