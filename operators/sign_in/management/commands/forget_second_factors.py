from typing import Any

from django.contrib.auth.models import User
from django.core.management.base import CommandParser

from core.command_line import JSONCommand
from core.inputs import InputProblem
from merchants.people.credentials import reset_factor


class Command(JSONCommand):
    help = (
        "Removes a user's second factor. The user signs in with the password and sets up a new one."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("username")

    def answer(self, **options: Any) -> dict[str, Any]:
        user = User.objects.filter(username=options["username"]).first()
        if user is None:
            raise InputProblem(f"There is no user {options['username']!r}.")
        forgotten = reset_factor(user=user, actor=None)
        return {"username": user.username, "forgotten": forgotten}
