"""Hypothesis for tests, with settings for a machine that does other work, too."""

from hypothesis import HealthCheck, Phase, example, given, settings
from hypothesis import strategies as st

__all__ = ["HealthCheck", "Phase", "example", "given", "settings", "st"]

settings.register_profile("shared machine", deadline=None, print_blob=True)
settings.load_profile("shared machine")
