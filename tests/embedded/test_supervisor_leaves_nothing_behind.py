"""A stopped or killed supervisor leaves no server process and no open port."""

import signal
from pathlib import Path

import pytest

from embedded.environment import FILE_NAME, Addresses, read_env_file
from embedded.processes import listen_error
from tests.embedded.running import TIMEOUT, all_servers_ended, supervised_servers


@pytest.mark.parametrize(
    ("sent", "code"),
    [
        (signal.SIGINT, 128 + signal.SIGINT),
        (signal.SIGTERM, 128 + signal.SIGTERM),
        (signal.SIGHUP, 128 + signal.SIGHUP),
        (signal.SIGKILL, -signal.SIGKILL),
    ],
)
def test_no_process_and_no_open_port_is_left(var: Path, sent: signal.Signals, code: int) -> None:
    with supervised_servers(var) as supervisor:
        supervisor.send_signal(sent)
        assert supervisor.wait(TIMEOUT) == code
    assert all_servers_ended(var)
    addresses = Addresses.from_urls(read_env_file(var / FILE_NAME))
    for port in (addresses.postgres_port, addresses.valkey_port):
        assert listen_error("127.0.0.1", port) is None
