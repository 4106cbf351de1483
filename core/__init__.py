"""The part that every app shares. It knows no app above it.

`api/` is the frame of every answer of the API, `database/` calls SQL functions and seals values,
`http/` has middleware and health checks, `backoffice/` the types of what each app declares for the
back office, `telemetry/` logs, metrics and traces, `files/` tables to download, uploads and logs
read back. `env` reads variables, and `checks` refuses
unsafe values. `queue` sends tasks to Celery. `command_line` is the base of the management commands,
and `inputs` checks what people type.
"""
