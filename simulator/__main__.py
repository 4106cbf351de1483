"""`make simulate`, and the exam. Run it with servers of its own:

python -m embedded exec --fast -- python -m simulator run
python -m embedded exec --fast -- python -m simulator exam -- COMMAND
"""

import argparse
import os
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import django
from django.conf import settings
from django.core.checks import register
from django.core.management import call_command

from embedded.commands import services
from embedded.environment import FOR_TESTED_SERVICE, PROJECT, SERVICE
from embedded.interrupts import Interrupted, interruptible
from embedded.processes import Process, free_port

HOST = "127.0.0.1"
START_SECONDS = 60.0
PROGRESS_SECONDS = 10.0


def main() -> int:
    options = _parser().parse_args()
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")
    port = free_port()
    outside = options.action == "run" and options.host != HOST
    # Where pages say that the service is: before the proxy, so that examples meet its faults.
    public_port = options.port if options.action == "run" else port
    name = "localhost" if outside else HOST
    os.environ.setdefault("PUBLIC_URL", f"http://{name}:{public_port}")
    django.setup()
    from simulator.exam import Exam, repeating  # noqa: PLC0415
    from simulator.faults import Choices  # noqa: PLC0415
    from simulator.proxy import Simulator, running  # noqa: PLC0415
    from simulator.shop import (  # noqa: PLC0415
        check_settings,
        make_operator,
        open_books,
        open_shop,
        work_on_orders,
    )

    # This process is the owner of the tables; `migrate` gives the service's role its rights.
    settings.SERVICE_ROLE = SERVICE
    register(check_settings, "simulator")
    call_command("check", tags=["simulator"])  # before it writes anything
    call_command("migrate", interactive=False, verbosity=0)
    with interruptible(), _service(port, any_name=outside):
        if options.action == "exam":
            largest = options.purchases // 10 + 1  # quantity of an order of one of five products
            shop = open_shop(products=5, codes=largest * (largest + 1))
            exam = Exam(
                shop, port, purchases=options.purchases, seed=options.seed, kills=options.kills
            )
            try:
                with repeating(lambda: sys.stderr.write(f"{exam.progress()}\n"), PROGRESS_SECONDS):
                    report = exam.run(options.command, each=options.each)
            except Interrupted:
                sys.stdout.write(f"Stopped early: {exam.progress()}.\n")
                return 1
            sys.stdout.write(f"{report}\n")
            return 1 if report.mistakes else 0
        shop = open_shop()
        choices = Choices.from_file(options.scenario) if options.scenario else Choices()
        simulator = Simulator(port, choices, host=options.host, port=options.port)
        with running(simulator):
            address = settings.PUBLIC_URL
            sys.stdout.write(
                f"No money and no code here is real.\n"
                f"  API            {address}/api/v1\n"
                f"  API key        {shop.key}\n"
                f"  Key for books  {open_books(shop)}\n"
                f"  Faults         {address}/simulator/\n"
                f"  Documents      {address}/docs/\n"
                f"  Products       {shop.products}\n"
                f"  Top-ups        {shop.topup_products}\n"
            )
            sys.stdout.flush()
            operator = make_operator()
            try:
                while True:
                    work_on_orders(operator)
                    time.sleep(1)
            except Interrupted:
                return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m simulator", description=__doc__)
    actions = parser.add_subparsers(dest="action", required=True)
    run = actions.add_parser("run", help="run the simulated shop until Ctrl-C")
    run.add_argument("--host", default=HOST, help="the address to listen at; 0.0.0.0 is all")
    run.add_argument("--port", type=int, default=8100)
    run.add_argument("--scenario", type=Path, help="a JSON file with seed, rate and faults")
    exam = actions.add_parser("exam", help="judge a program; exit code 1 if it made a mistake")
    exam.add_argument("--purchases", type=int, default=500)
    exam.add_argument("--seed", type=int, default=7)
    exam.add_argument("--kills", type=int, default=20)
    exam.add_argument("--each", action="store_true", help="start the program for each order")
    exam.add_argument("command", nargs="+", metavar="COMMAND", help="the program, after --")
    return parser


@contextmanager
def _service(port: int, *, any_name: bool) -> Iterator[None]:
    """The web processes of the service, with its own role in the database.

    `any_name`: other machines and containers call it, under names that it cannot know.
    """
    with tempfile.TemporaryDirectory(prefix="voucher-simulator-") as folder:
        environment = {
            **os.environ,
            "DATABASE_URL": os.environ[FOR_TESTED_SERVICE],
            "GRANIAN_WORKERS": "2",
            "METRICS_DIR": f"{folder}/metrics",
            **({"DJANGO_ALLOWED_HOSTS": "*"} if any_name else {}),
        }
        web = next(
            each for each in services(host=HOST, port=port, var=Path(folder)) if each.name == "web"
        )
        with (Path(folder) / "web.log").open("wb") as log:
            process = Process(
                web.name, web.command, environment=environment, folder=PROJECT, output=log
            )
            try:
                _wait(process, port)
                yield
            finally:
                process.stop(timeout=35)


def _wait(process: Process, port: int) -> None:
    from simulator.proxy import is_up  # noqa: PLC0415

    ends = time.monotonic() + START_SECONDS
    while not is_up(port):
        if process.exit_code() is not None or time.monotonic() > ends:
            raise SystemExit("The service did not start.")
        time.sleep(0.1)


if __name__ == "__main__":
    sys.exit(main())
