"""The settings of a web process that serves only pages for people."""

from config.settings import *  # noqa: F403

ROOT_URLCONF = "config.urls_pages"
# The check would generate the OpenAPI document from ROOT_URLCONF, which has no API here.
SILENCED_SYSTEM_CHECKS = [*SILENCED_SYSTEM_CHECKS, "drf_spectacular.E001"]  # noqa: F405
