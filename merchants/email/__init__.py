"""Emails to members: stored in the database first, then sent by Celery."""
