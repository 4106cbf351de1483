"""NAME_FILE names a file with the value of the variable NAME (core/environment/env.py)."""

import os
from pathlib import Path

import pytest

from core.environment.env import StrictEnv


def put(monkeypatch: pytest.MonkeyPatch, folder: Path, name: str, content: bytes) -> None:
    file = folder / name.lower()
    file.write_bytes(content)
    monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv(f"{name}_FILE", str(file))


@pytest.mark.parametrize("end", [b"", b"\n", b"\r\n"])
def test_a_secret_is_read_from_its_file(
    end: bytes, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    put(monkeypatch, tmp_path, "DJANGO_SECRET_KEY", b" sp\xc3\xa9cial " + end)
    assert StrictEnv().str("DJANGO_SECRET_KEY", "") == " spécial "
    assert "DJANGO_SECRET_KEY" in StrictEnv()


def test_typed_values_come_from_files_too(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    put(monkeypatch, tmp_path, "DATABASE_URL", b"postgresql://u:p@db:5432/shop?sslmode=require\n")
    put(monkeypatch, tmp_path, "REDIS_URL", b"redis://:secret@cache/0\n")
    put(monkeypatch, tmp_path, "CODE_ENCRYPTION_KEYS", b"1:a,2:b\n")
    env = StrictEnv()
    assert env.postgres("DATABASE_URL")["PASSWORD"] == "p"
    assert env.redis("REDIS_URL") == "redis://:secret@cache/0"
    assert env.list("CODE_ENCRYPTION_KEYS") == ["1:a", "2:b"]


def test_an_empty_file_is_an_empty_value(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    put(monkeypatch, tmp_path, "TELEGRAM_BOT_TOKEN", b"\n")
    assert StrictEnv().str("TELEGRAM_BOT_TOKEN", "unset") == ""


def test_secrets_of_files_stay_out_of_the_environment(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    put(monkeypatch, tmp_path, "DJANGO_SECRET_KEY", b"secret")
    seen = StrictEnv().str("DJANGO_SECRET_KEY", "")
    assert seen == "secret"
    assert seen not in os.environ.values()


@pytest.mark.parametrize("content", [None, b"\xff"])
def test_an_unreadable_file_stops_the_start(
    content: bytes | None, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    put(monkeypatch, tmp_path, "REDIS_URL", content or b"")
    if content is None:
        (tmp_path / "redis_url").unlink()
    with pytest.raises(SystemExit, match=r"voucher.E009: REDIS_URL_FILE names a file"):
        StrictEnv().redis("REDIS_URL")


def test_a_variable_and_its_file_do_not_go_together(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    put(monkeypatch, tmp_path, "REDIS_URL", b"redis://one")
    monkeypatch.setenv("REDIS_URL", "redis://two")
    with pytest.raises(SystemExit, match="REDIS_URL_FILE and REDIS_URL are both set") as stopped:
        StrictEnv().redis("REDIS_URL")
    assert "redis://" not in str(stopped.value)
