"""`python -m config.embedded exec -- COMMAND`."""

import argparse
import sys
from collections.abc import Sequence

from config.embedded.errors import EmbeddedError
from config.embedded.temporary import run_command


def main(arguments: Sequence[str] | None = None) -> int:
    """Do what the command line says; trouble is one line on stderr and exit code 1."""
    options = _parser().parse_args(arguments)
    try:
        return run_command(options.command, durable=not options.fast)
    except EmbeddedError as error:
        print(error, file=sys.stderr)
        return 1


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m config.embedded", description=__doc__)
    actions = parser.add_subparsers(required=True)
    execute = actions.add_parser("exec", help="run a command with empty servers of its own")
    execute.add_argument("--fast", action="store_true", help="servers that do not wait for disks")
    execute.add_argument("command", nargs="+", metavar="COMMAND")
    return parser


if __name__ == "__main__":
    sys.exit(main())
