"""Answers to Telegram that nobody waits for, and the wait for them when the bot stops."""

import asyncio
from collections.abc import Coroutine
from typing import Any

import structlog

logger = structlog.get_logger(__name__)


class Background:
    """Coroutines that run beside the handling of updates. None of them may raise."""

    def __init__(self) -> None:
        self._running: set[asyncio.Task[None]] = set()

    def start(self, work: Coroutine[Any, Any, None]) -> None:
        """Runs `work` with the present context, such as the id in log lines."""
        task = asyncio.ensure_future(work)
        self._running.add(task)
        task.add_done_callback(self._running.discard)

    async def finish(self, seconds: float) -> None:
        """Waits until all is done, for at most this long; what is left is cancelled and logged."""
        if not self._running:
            return
        _, late = await asyncio.wait(self._running, timeout=seconds)
        for task in late:
            task.cancel()
        if late:
            logger.warning("telegram_answers_abandoned", count=len(late))
            await asyncio.wait(late)
