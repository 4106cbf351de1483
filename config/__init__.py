"""Puts the service together: the only place that knows every app.

`settings` reads the environment. `urls`, `wsgi` and `celery` are the entry points, `schedule` lists
the periodic tasks, and `theme` configures the pages of the back office.
"""
