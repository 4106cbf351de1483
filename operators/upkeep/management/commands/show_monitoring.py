from argparse import ArgumentParser
from typing import Any

from core.command_line import ServiceCommand
from operators.upkeep.monitoring.dashboard import dashboard_as_json
from operators.upkeep.monitoring.rules import document, rules_as_yaml

FILES = {"alerts": rules_as_yaml, "dashboard": dashboard_as_json, "document": document}


class Command(ServiceCommand):
    requires_system_checks = ()  # the declarations need no database and no keys
    help = (
        "Prints the alert rules for Prometheus, with the limits of this installation, or the"
        " dashboard for Grafana, or the page docs/operate/metrics.md."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("file", choices=FILES)

    def handle(self, *args: Any, **options: Any) -> None:
        self.stdout.write(FILES[options["file"]](), ending="")
