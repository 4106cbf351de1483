"""Base classes of the management commands: JSON on stdout, a failure as one line on stderr."""

import os
import pwd
from abc import abstractmethod
from argparse import ArgumentTypeError
from collections.abc import Iterator
from contextlib import contextmanager
from decimal import Decimal
from pathlib import Path
from typing import Any

from django.core.exceptions import ValidationError
from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.db import DataError, OperationalError
from structlog.contextvars import bound_contextvars

from core.api.errors import ApiError
from core.checks import TAG
from core.database.columns import ACTOR_LENGTH
from core.database.sealing import CannotOpen
from core.inputs import InputProblem, one_line, problems_as_text
from core.json_output import dumps
from core.numbers import read_clear_number


class ServiceCommand(BaseCommand):
    """A command that reports a failure as one line on stderr, never as a traceback.

    Exit status 1: the command was refused or failed. Exit status 2: the arguments are not valid.
    """

    # What the web server and the workers check at their start.
    requires_system_checks: tuple[str, ...] = (TAG,)

    def create_parser(self, prog_name: str, subcommand: str, **kwargs: Any) -> CommandParser:
        parser = super().create_parser(prog_name, subcommand, **kwargs)
        # An argument error prints one line; only `--help` prints the usage.
        parser.print_usage = lambda file=None: None  # type: ignore[method-assign]
        return parser

    def execute(self, *args: Any, **options: Any) -> str | None:
        with _one_line_failures():
            return super().execute(*args, **options)


class JSONCommand(ServiceCommand):
    """A command that prints one JSON object. Money values are exact JSON numbers."""

    @abstractmethod
    def answer(self, **options: Any) -> dict[str, Any]:
        """Does the work and returns the object to print."""

    def handle(self, *args: Any, **options: Any) -> None:
        with acting_from_shell():
            self.stdout.write(dumps(self.answer(**options)).decode())


def shell_actor() -> str:
    """The person who runs this command, as ledger and audit trail name them: `shell:anna`.

    The user of the operating system; with sudo, the user who called sudo.
    """
    name = os.environ.get("SUDO_USER", "")
    if not name or not name.isprintable():
        uid = os.getuid()
        try:
            name = pwd.getpwuid(uid).pw_name
        except KeyError:  # a container may run as a number that has no name
            name = str(uid)
    return f"shell:{name}"[:ACTOR_LENGTH]


@contextmanager
def acting_from_shell() -> Iterator[None]:
    """Within the block, audit entries without a user and log lines say who runs the command."""
    with bound_contextvars(shell_actor=shell_actor()):
        yield


@contextmanager
def _one_line_failures() -> Iterator[None]:
    try:
        yield
    except ValidationError as error:
        raise CommandError(one_line(error)) from None
    except ApiError as error:
        raise CommandError(error.message) from None
    except (InputProblem, CannotOpen) as error:
        raise CommandError(str(error)) from None
    except (OperationalError, DataError) as error:
        # The first line only: the lines after it may quote values of the row.
        raise CommandError(f"Database error: {str(error).partition(chr(10))[0]}") from None


def add_problems_option(parser: CommandParser) -> None:
    """Adds `--problems FILE`, for `writing_problems`."""
    parser.add_argument(
        "--problems",
        type=Path,
        metavar="FILE",
        help="if the file is refused, write all its problems to this new file, a line each",
    )


def add_check_option(parser: CommandParser) -> None:
    """Adds `--check`."""
    parser.add_argument(
        "--check",
        action="store_true",
        help="import nothing: show what would change, and the doubts",
    )


def add_confirm_option(parser: CommandParser) -> None:
    """Adds `--confirm ID`, for the doubts about a file (core/files/doubts.py)."""
    parser.add_argument(
        "--confirm",
        action="append",
        default=[],
        metavar="ID",
        help="confirm the doubt with this id; once for each doubt",
    )


@contextmanager
def writing_problems(path: Path | None) -> Iterator[None]:
    """Writes the problems of an InputProblem of the block to this file, and raises it again."""
    try:
        yield
    except InputProblem as refused:
        if path:
            text = problems_as_text(refused.problems, refused.more)
            try:
                with path.open("x", encoding="utf-8", errors="backslashreplace") as file:
                    file.write(text)
            except OSError as error:
                raise CommandError(f"{refused} Cannot write {path}: {error.strerror}.") from None
        raise


def amount(text: str) -> Decimal:
    """Argument type: an amount of money. The services check its range and its decimals.

    Raises ArgumentTypeError when `text` is not a decimal number.
    """
    try:
        return read_clear_number(text)
    except InputProblem as problem:
        raise ArgumentTypeError(f"an amount must be a number such as 100.00: {problem}") from None


def whole_number(text: str) -> int:
    """Argument type: a whole number, such as an id. Raises ArgumentTypeError for anything else, and
    for what only Python takes for one, such as `1_000`."""
    try:
        number = read_clear_number(text)
    except InputProblem as problem:
        raise ArgumentTypeError(f"a whole number such as 12 is needed: {problem}") from None
    if number != int(number):
        raise ArgumentTypeError(f"a whole number such as 12 is needed: {text.strip()} is not whole")
    return int(number)
