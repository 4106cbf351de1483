"""`var/embedded.env` is private, and later runs keep its secrets."""

import socket
import stat
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

import pytest

from embedded.environment import FILE_NAME, Addresses, read_env_file
from embedded.errors import EmbeddedError
from tests.embedded.running import connect, servers


def permissions(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_only_the_owner_can_read_the_secrets(fresh_var: Path) -> None:
    assert permissions(fresh_var) == 0o700
    assert permissions(fresh_var / FILE_NAME) == 0o600


def test_a_second_run_keeps_the_file_and_lines_added_by_hand(var: Path) -> None:
    with (var / FILE_NAME).open("a") as file:
        file.write("LOG_LEVEL=DEBUG\n")
    first = read_env_file(var / FILE_NAME)
    with servers(var) as environment:
        assert environment == read_env_file(var / FILE_NAME) == first


def test_only_a_port_in_use_is_replaced(var: Path) -> None:
    before = Addresses.from_urls(read_env_file(var / FILE_NAME))
    with socket.create_server(("127.0.0.1", before.postgres_port)), servers(var):
        after = Addresses.from_urls(read_env_file(var / FILE_NAME))
        connect(var).close()
    assert after.postgres_port != before.postgres_port
    assert after.postgres_password == before.postgres_password
    assert after.valkey_port == before.valkey_port


@pytest.mark.parametrize("server", ["postgres_port", "valkey_port"])
def test_a_port_taken_right_before_the_start_is_replaced(
    var: Path, monkeypatch: pytest.MonkeyPatch, server: str
) -> None:
    """Nothing reserves a port between the check that it is free and the start of its server."""
    checked = Addresses.moved_if_taken
    with ExitStack() as stack:

        def taken_after_the_check(addresses: Addresses) -> Addresses:
            free = checked(addresses)
            monkeypatch.undo()
            stack.enter_context(socket.create_server(("127.0.0.1", getattr(free, server))))
            return free

        monkeypatch.setattr(Addresses, "moved_if_taken", taken_after_the_check)
        before = Addresses.from_urls(read_env_file(var / FILE_NAME))
        with servers(var):
            after = Addresses.from_urls(read_env_file(var / FILE_NAME))
            connect(var).close()
    assert after == replace(before, **{server: getattr(after, server)})
    assert getattr(after, server) != getattr(before, server)


def test_data_without_its_keys_is_refused_and_kept(var: Path) -> None:
    (var / FILE_NAME).unlink()
    with pytest.raises(EmbeddedError, match="CODE_ENCRYPTION_KEYS"), servers(var):
        pass
    assert not (var / FILE_NAME).exists()
