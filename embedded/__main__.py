"""Runs the service, or any command, with its own PostgreSQL and Valkey."""

import argparse
import os
import sys
from collections.abc import Sequence
from pathlib import Path

from embedded.environment import VAR
from embedded.errors import EmbeddedError
from embedded.execute import execute
from embedded.interrupts import Interrupted
from embedded.supervisor import run_servers, run_service

PORTS = range(1, 65536)


def main(arguments: Sequence[str] | None = None) -> int | str:
    """Runs the action of the command line. Returns an exit code, or one line for stderr."""
    options = _parser().parse_args(arguments)
    try:
        if options.action == "exec":
            return execute(options.command, durable=not options.fast)
        if options.action == "servers":
            run_servers(var=options.var)
        else:
            run_service(var=options.var, host=options.host, port=options.port)
    except Interrupted as interrupted:
        return 0 if options.action == "run" else 128 + interrupted.number
    except (EmbeddedError, OSError) as error:
        return str(error)
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m embedded", description=__doc__)
    actions = parser.add_subparsers(dest="action", required=True)

    shared = argparse.ArgumentParser(add_help=False)
    shared.add_argument("--var", type=Path, default=VAR, help="directory of the data and secrets")

    service = actions.add_parser("run", parents=[shared], help="run the whole service")
    service.add_argument("--host", default=os.environ.get("LISTEN") or "127.0.0.1")
    service.add_argument("--port", type=_port, default=os.environ.get("PORT") or None)

    actions.add_parser("servers", parents=[shared], help="run only PostgreSQL and Valkey")

    command = actions.add_parser("exec", help="run a command with new, temporary servers")
    command.add_argument("--fast", action="store_true", help="the servers never sync to disk")
    command.add_argument("command", nargs="+", metavar="COMMAND", help="the command, after --")
    return parser


def _port(text: str) -> int:
    if text.isdecimal() and int(text) in PORTS:
        return int(text)
    raise argparse.ArgumentTypeError(f"{text!r} is not a port")


if __name__ == "__main__":
    sys.exit(main())
