"""The project: what every app shares, and what starts the service.

`settings` (with `env`) reads the environment and `checks` refuses unsafe values. `urls`, `wsgi` and
`celery` are the entry points; `logs` configures logging. `queue` sends tasks to Celery.
`command_line` is the base of the management commands, and `inputs` checks what people type.
`backoffice/`, `trails` and `finders` have the types of what each app declares for the back office.
`api/`, `database/` and `http/` say in their own docstrings what they hold.
"""
