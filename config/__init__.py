"""The project: what every app shares, and what starts the service.

`settings` (with `env`) reads the environment and `checks` refuses unsafe values. `urls`, `wsgi` and
`celery` are the entry points; `logs` configures logging. `queue` sends tasks to Celery.
`command_line` is the base of the management commands, and `inputs` checks what people type.
`backoffice/` has the types of what each app declares for the back office, some of them in `trails`,
and the registry that collects it. `search` asks the finders among them for both sites. `api/`,
`database/` and `http/` say in their own docstrings what they hold.
"""
