"""`var/embedded.env` is private, and later runs keep its secrets."""

import socket
import stat
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


def test_data_without_its_keys_is_refused_and_kept(var: Path) -> None:
    (var / FILE_NAME).unlink()
    with pytest.raises(EmbeddedError, match="CODE_ENCRYPTION_KEYS"), servers(var):
        pass
    assert not (var / FILE_NAME).exists()
