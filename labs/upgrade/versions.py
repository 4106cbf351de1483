"""The processes of one version of the service: its commands, web server and worker."""

import json
import os
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psycopg
from psycopg import sql

from tests.live import LiveServer, owner_url
from tests.tasks.running import Celery

OPERATOR = "operator"


@dataclass
class Version:
    """A checkout of the service, the environment of its processes, and those that run.

    Each checkout runs with the packages that it pins, as on a host where both are installed.
    """

    name: str
    project: Path
    environment: Mapping[str, str]
    folder: Path

    def manage(self, *arguments: str, **environment: str) -> str:
        """The output of a management command."""
        command = [str(self.project / ".venv/bin/python"), "manage.py", *arguments]
        settings = {**os.environ, **self.environment, **environment}
        done = subprocess.run(
            command, env=settings, cwd=self.project, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, f"{self.name}: {arguments}\n{done.stdout}{done.stderr}"
        return done.stdout

    def ask(self, *arguments: str) -> Any:
        """The JSON that a management command prints."""
        return json.loads(self.manage(*arguments))

    @contextmanager
    def web_server(self) -> Iterator[LiveServer]:
        server = LiveServer(
            self.environment, workers=1, folder=self._new_folder("web"), project=self.project
        )
        try:
            server.start()
            yield server
        finally:
            server.stop()

    @contextmanager
    def worker(self) -> Iterator[Celery]:
        worker = Celery(
            "worker",
            folder=self._new_folder("worker"),
            environment={**os.environ, **self.environment},
            project=self.project,
        )
        try:
            worker.start()
            yield worker
        finally:
            worker.stop()

    def _new_folder(self, name: str) -> Path:
        folder = self.folder / f"{name}-{self.name}"
        folder.mkdir()
        return folder


@contextmanager
def empty_database(name: str) -> Iterator[str]:
    """The URL of a new database on the test's server, without any table."""
    here = owner_url()
    place = sql.Identifier(name)
    with ExitStack() as stack:
        server = stack.enter_context(psycopg.connect(here, autocommit=True))
        server.execute(sql.SQL("DROP DATABASE IF EXISTS {} WITH (FORCE)").format(place))
        server.execute(sql.SQL("CREATE DATABASE {}").format(place))
        stack.callback(server.execute, sql.SQL("DROP DATABASE {} WITH (FORCE)").format(place))
        yield f"{here.rpartition('/')[0]}/{name}"
