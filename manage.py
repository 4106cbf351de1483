#!/usr/bin/env python
"""Runs the management commands of the service: `python manage.py help` lists them."""

import os
import sys

from django.core.management import execute_from_command_line
from django.db import ProgrammingError

if __name__ == "__main__":
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")
    try:
        execute_from_command_line(sys.argv)
    except ProgrammingError as error:
        from core.checks import schema_problem  # after the settings

        problem = schema_problem(error)
        if problem is None:
            raise
        sys.exit(problem)
