from typing import Any

from django.contrib.auth.models import User
from django.core.management.base import CommandParser

from accounts.second_factor import forget_second_factors
from config.command_line import JSONCommand
from config.inputs import InputProblem


class Command(JSONCommand):
    help = "Removes a user's second factors. The user logs in with the password and enrols again."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("username")

    def answer(self, **options: Any) -> dict[str, Any]:
        user = User.objects.filter(username=options["username"]).first()
        if user is None:
            raise InputProblem(f"There is no user {options['username']!r}.")
        return {"username": user.username, "forgotten": forget_second_factors(user=user)}
