"""Starts processes of the service in milliseconds, for tests that kill hundreds of them.

`python -m labs.interleavings.kills.zygote` loads Django once, without a database connection. For
each line of JSON on its standard input it forks: the child is a process of its own, opens its own
connections, and does what the line says with the service's own code. It is killed like any other
process.

    {"do": "buy", "port": 5433, "settings": {}, "arguments": {...}}

It answers with two lines on what was its standard output: the process id, and then the exit code
with the result. Everything that the service prints goes to standard error.
"""

import json
import os
import sys
from collections.abc import Callable
from typing import Any

import django
from django.conf import settings


def buy(*, headers: dict[str, str], body: dict[str, Any]) -> Any:
    """A web process: the whole stack from the URL on."""
    from django.test import Client  # noqa: PLC0415  not loaded before the set-up

    answer = Client(raise_request_exception=False).post(
        "/api/v1/orders", json.dumps(body), content_type="application/json", headers=headers
    )
    return {
        "status": answer.status_code,
        "replay": "Idempotent-Replay" in answer.headers,
        "body": answer.json(),
    }


def task(*, name: str, arguments: list[Any]) -> Any:
    """A worker: a Celery task."""
    from config.celery import app  # noqa: PLC0415

    app.loader.import_default_modules()
    return app.tasks[name].run(*arguments)


def command(*, name: str, arguments: list[str]) -> Any:
    """A command in a shell, which prints its result."""
    from django.core.management import call_command  # noqa: PLC0415

    call_command(name, *arguments)


ACTIONS: dict[str, Callable[..., Any]] = {"buy": buy, "task": task, "command": command}


def main() -> None:
    answers = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")
    django.setup()
    from django.urls import get_resolver  # noqa: PLC0415

    get_resolver().url_patterns  # noqa: B018  loads every view before the first fork
    for line in sys.stdin:
        order = json.loads(line)
        reading, writing = os.pipe()
        child = os.fork()
        if child == 0:
            _run(order, writing)
        os.close(writing)
        answers.write(json.dumps({"pid": child}) + "\n")
        with os.fdopen(reading) as results:
            result = results.read()
        _, status = os.waitpid(child, 0)
        code = os.waitstatus_to_exitcode(status)
        end = {"exit": code, "result": json.loads(result) if result else None}
        answers.write(json.dumps(end) + "\n")


def _run(order: dict[str, Any], writing: int) -> None:
    """Is the child; never returns."""
    code = 1
    try:
        from django.db import connection  # noqa: PLC0415

        connection.settings_dict["PORT"] = order["port"]
        for name, value in order["settings"].items():
            setattr(settings, name, value)
        result = ACTIONS[order["do"]](**order["arguments"])
        os.write(writing, json.dumps(result).encode())
        code = 0
    except BaseException as error:
        sys.stderr.write(f"{type(error).__name__}: {error}\n")
    finally:
        sys.stderr.flush()
        os._exit(code)


if __name__ == "__main__":
    main()
