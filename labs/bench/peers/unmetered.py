"""The service without its metrics: what they cost is the difference.

Nothing is counted or written, and the middleware that counts requests is missing. The calls and the
reading of clocks stay: about two microseconds of a purchase.
"""

import os
from typing import Any

from core.telemetry import metrics

os.environ["DJANGO_SETTINGS_MODULE"] = "labs.bench.peers.unmetered_settings"


def _nothing(*arguments: Any) -> None:
    """Counts nothing."""


_metrics: Any = metrics
_metrics.Count.add = _metrics.Times.add = _metrics.keep_in_files = _nothing

from config.wsgi import application  # noqa: E402

__all__ = ["application"]
