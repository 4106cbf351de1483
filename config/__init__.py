"""Settings, URLs, Celery, and the frame every API answer stands in."""

from config.celery import app as celery_app

__all__ = ["celery_app"]
