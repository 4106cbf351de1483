"""After a kill of any process, the next run starts and finds every committed row."""

import os
import signal
from pathlib import Path

import psycopg
import redis

from embedded.environment import FILE_NAME, read_env_file
from tests.embedded.running import TIMEOUT, connect, postmaster, servers, supervised_servers


def write_row(var: Path) -> None:
    with connect(var) as connection:
        connection.execute("CREATE TABLE kept AS SELECT 42 AS answer")


def read_row(var: Path) -> object:
    with connect(var) as connection:
        row = connection.execute("SELECT answer FROM kept").fetchone()
    return row and row[0]


def broker(var: Path) -> redis.Redis:
    return redis.Redis.from_url(read_env_file(var / FILE_NAME)["CELERY_BROKER_URL"])


def test_rows_survive_a_killed_database(var: Path) -> None:
    with supervised_servers(var) as supervisor:
        write_row(var)
        os.kill(postmaster(var), signal.SIGKILL)
        assert supervisor.wait(TIMEOUT) == 1
    with servers(var):
        assert read_row(var) == 42


def test_rows_survive_a_kill_of_supervisor_and_database(var: Path) -> None:
    with supervised_servers(var) as supervisor:
        write_row(var)
        database = postmaster(var)
        supervisor.kill()
        os.kill(database, signal.SIGKILL)
    with servers(var):
        assert read_row(var) == 42


def test_a_stale_pid_file_with_a_living_pid_is_ignored(var: Path) -> None:
    (var / "postgres" / "postmaster.pid").write_text(f"{os.getpid()}\n{var / 'postgres'}\n")
    with servers(var), connect(var) as connection:
        assert connection.info.status == psycopg.pq.ConnStatus.OK


def test_an_interrupted_first_start_is_repeated(tmp_path: Path) -> None:
    unfinished = tmp_path / "var" / "postgres.unfinished"
    unfinished.mkdir(parents=True)
    (unfinished / "PG_VERSION").write_text("half")
    with servers(tmp_path / "var"):
        assert not unfinished.exists()


def test_the_broker_keeps_its_queue_across_a_restart(var: Path) -> None:
    with servers(var), broker(var) as queue:
        queue.rpush("celery", "task")
    with servers(var), broker(var) as queue:
        assert queue.lrange("celery", 0, -1) == [b"task"]
