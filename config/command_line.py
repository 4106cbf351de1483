"""What the management commands share: JSON on stdout, and one clear line for a failure."""

from abc import abstractmethod
from argparse import ArgumentTypeError
from collections.abc import Iterator
from contextlib import contextmanager
from decimal import Decimal, InvalidOperation
from typing import Any

from django.core.exceptions import ValidationError
from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.db import DataError, OperationalError

from config.api.errors import ApiError
from config.api.json import dumps
from config.checks import TAG
from config.database.sealing import CannotOpen
from config.inputs import InputProblem, one_line


class ServiceCommand(BaseCommand):
    """A command that fails with one line and a status other than 0, never with a traceback.

    Status 1: refused or failed. Status 2: the command line itself cannot be read.
    """

    requires_system_checks = (TAG,)  # what the web server and the workers check at their start

    def create_parser(self, prog_name: str, subcommand: str, **kwargs: Any) -> CommandParser:
        parser = super().create_parser(prog_name, subcommand, **kwargs)
        parser.print_usage = lambda file=None: None  # type: ignore[method-assign]  # `--help` has it
        return parser

    def execute(self, *args: Any, **options: Any) -> str | None:
        with _failing_in_one_line():
            return super().execute(*args, **options)


class JSONCommand(ServiceCommand):
    """A command that prints one JSON object. Money in it is exact, and written as numbers."""

    @abstractmethod
    def answer(self, **options: Any) -> dict[str, Any]:
        """Does the work; returns what to print."""

    def handle(self, *args: Any, **options: Any) -> None:
        self.stdout.write(dumps(self.answer(**options)).decode())


@contextmanager
def _failing_in_one_line() -> Iterator[None]:
    try:
        yield
    except ValidationError as error:
        raise CommandError(one_line(error)) from None
    except ApiError as error:
        raise CommandError(error.message) from None
    except (InputProblem, CannotOpen) as error:
        raise CommandError(str(error)) from None
    except (OperationalError, DataError) as error:
        # Only the first line: what follows it may quote the row.
        raise CommandError(f"The database says: {str(error).partition(chr(10))[0]}") from None


def amount(text: str) -> Decimal:
    """An argument that is money; the services say what may be booked."""
    try:
        return Decimal(text)
    except InvalidOperation:
        raise ArgumentTypeError("an amount is a number such as 100.00") from None
