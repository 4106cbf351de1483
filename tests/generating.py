"""Hypothesis for tests, with settings for a machine that does other work, too.

CI tries as many examples as Hypothesis does by itself, a developer's machine a quarter of them.
"""

import os

from hypothesis import HealthCheck, Phase, example, given, settings
from hypothesis import strategies as st

__all__ = ["HealthCheck", "Phase", "example", "given", "settings", "st"]

EXAMPLES = 100 if os.environ.get("CI") else 25

settings.register_profile("shared machine", deadline=None, print_blob=True, max_examples=EXAMPLES)
settings.load_profile("shared machine")
