from typing import Any

from django.contrib.auth.models import User
from django.core.management.base import CommandParser

from core.command_line import JSONCommand, whole_number
from core.inputs import InputProblem
from operators.telegram.staff_links import link_user


class Command(JSONCommand):
    help = "Links a Telegram account to a member of staff and removes the user's earlier link."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("username")
        parser.add_argument("telegram_user_id", type=whole_number)

    def answer(self, **options: Any) -> dict[str, Any]:
        user = User.objects.filter(username=options["username"]).first()
        if user is None:
            raise InputProblem(f"There is no user {options['username']!r}.")
        link = link_user(user=user, telegram_user_id=options["telegram_user_id"], actor=None)
        return {"username": user.username, "telegram_user_id": link.telegram_user_id}
