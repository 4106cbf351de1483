"""Buildah and Podman for the tests, with images and containers of their own in ~/.cache.

What is there is kept between runs: the base made from Debian's packages, the wheels, and the layers
of every image. A first run takes two minutes longer.
"""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache
from pathlib import Path

from embedded.environment import PROJECT
from embedded.locks import FileLock

# Outside the checkout, because a build looks through the whole checkout.
FOLDER = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "voucher-tests"
BASE = "localhost/voucher-test-base"
SUITE, PYTHON = "bookworm", "3.11"  # Debian 12 and its Python
PACKAGES = "python3,python3-venv,dash,coreutils,base-files,base-passwd,libc-bin,tzdata"
# These need more rights than some machines give to a container. Users need none of them.
CONTAINERS_CONF = """
[containers]
cgroups = "no-conmon"
default_ulimits = ["nofile=1024:1024", "nproc=1024:1024"]
[engine]
cgroup_manager = "cgroupfs"
events_logger = "file"
runtime = "runc"
"""


@cache
def user_namespaces() -> bool:
    """Whether this machine lets us make user namespaces, which containers need."""
    return subprocess.run(["unshare", "--user", "true"], check=False).returncode == 0


def environment() -> dict[str, str]:
    """The variables that keep our images and containers apart from those of this machine."""
    return os.environ | {
        "CONTAINERS_CONF": str(FOLDER / "containers.conf"),
        "CONTAINERS_STORAGE_CONF": str(FOLDER / "storage.conf"),
    }


def run(
    *command: str | Path,
    check: bool = True,
    timeout: float = 600,
    variables: Mapping[str, str] | None = None,
) -> subprocess.CompletedProcess[str]:
    """Runs a program with our images. Fails with its output unless it ends with 0."""
    ended = subprocess.run(
        command,
        env=environment() | dict(variables or {}),
        capture_output=True,
        text=True,
        check=False,
        timeout=timeout,
    )
    if check:
        assert ended.returncode == 0, f"{command}\n{ended.stdout}\n{ended.stderr}"
    return ended


def podman(*arguments: str | Path, check: bool = True, timeout: float = 60) -> str:
    """Runs podman and returns what it printed."""
    return run("podman", *arguments, check=check, timeout=timeout).stdout.strip()


@contextmanager
def locked() -> Iterator[None]:
    """One test process at a time builds images."""
    FOLDER.mkdir(mode=0o700, parents=True, exist_ok=True)
    with FileLock(FOLDER / "build.lock") as lock:
        assert lock.acquire(timeout=600)
        _configure()
        yield


def build(
    tag: str,
    *,
    file: Path,
    context: Path,
    arguments: Mapping[str, str] | None = None,
    volumes: Sequence[str] = (),
    target: str = "",
) -> str:
    """Builds an image, in Docker's format because OCI's has no HEALTHCHECK. Returns its name."""
    options = [f"--build-arg={name}={value}" for name, value in (arguments or {}).items()]
    options += [f"--volume={volume}" for volume in volumes]
    options += [f"--target={target}"] if target else []
    run(
        *("buildah", "bud", "--isolation=chroot", "--layers", "--format=docker", "--quiet"),
        *("--pull=never", f"--tag={tag}", f"--file={file}", *options, str(context)),
    )
    return tag


def base() -> str:
    """The base image, made of Debian's packages."""
    tar, made_of = FOLDER / "base" / "base.tar", FOLDER / "base" / "packages"
    if not made_of.is_file() or made_of.read_text() != PACKAGES:
        tar.parent.mkdir(exist_ok=True)
        unfinished = tar.with_name("unfinished.tar")
        # `extract` unpacks and runs no scripts: half the time and a third of the size. The hook
        # does what the scripts of dash and base-passwd would.
        run(
            *("mmdebstrap", "--variant=extract", f"--include={PACKAGES}"),
            *("--dpkgopt=force-unsafe-io", '--aptopt=Acquire::Languages "none"'),
            *("--dpkgopt=path-exclude=/usr/share/doc/*", "--dpkgopt=path-exclude=*/locale/*"),
            '--customize-hook=ln -s dash "$1/bin/sh"',
            '--customize-hook=echo root:x:0:0:root:/root:/bin/sh >"$1/etc/passwd"',
            '--customize-hook=echo root:x:0: >"$1/etc/group"',
            *(SUITE, unfinished),
        )
        unfinished.rename(tar)
        made_of.write_text(PACKAGES)
    return build(BASE, file=PROJECT / "tests/deploy/base/Containerfile", context=tar.parent)


def wheels() -> list[str]:
    """Volumes for a build: the pinned packages as wheels, and the settings that pip reads there.

    This machine's own pip fetches them, because only it knows where this machine finds packages.
    """
    pinned = (PROJECT / "requirements" / "embedded.txt").read_text()
    everywhere = re.sub(r" ; .* \\", r" \\", pinned)  # whatever this machine's Python is
    folder = FOLDER / "wheels"
    fetched = folder / "fetched.txt"
    if not fetched.is_file() or fetched.read_text() != everywhere:
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
        wanted = folder / "wanted.txt"
        wanted.write_text(everywhere)
        run(
            *(f"{sys.base_prefix}/bin/python3", "-m", "pip", "download", "--quiet", "--no-deps"),
            *("--only-binary=:all:", f"--python-version={PYTHON}", "--require-hashes"),
            *(f"--requirement={wanted}", f"--dest={folder}"),
        )
        wanted.rename(fetched)
    settings = FOLDER / "pip.conf"
    settings.write_text("[global]\nno-index = true\nfind-links = /wheels\n")
    return [f"{folder}:/wheels:ro", f"{settings}:/etc/pip.conf:ro"]


@cache  # a build takes seconds even if every layer is there
def service_image(
    project: Path = PROJECT, *, tag: str = "localhost/voucher", target: str = ""
) -> str:
    """The image of the service, from the Containerfile that users build, on the base for tests.

    `target`: another image of the same file, such as the simulator's.
    """
    with locked():
        return build(
            tag,
            file=project / "Containerfile",
            context=project,
            arguments={"BASE": base(), "VERSION": "test"},
            volumes=wheels(),
            target=target,
        )


def _configure() -> None:
    (FOLDER / "containers.conf").write_text(CONTAINERS_CONF)
    settings = FOLDER / "storage.conf"
    if not settings.is_file():
        for driver in ("overlay", "vfs"):  # vfs copies every layer and works everywhere
            settings.write_text(
                f'[storage]\ndriver = "{driver}"\n'
                f'graphroot = "{FOLDER / "storage"}"\nrunroot = "{FOLDER / "running"}"\n'
            )
            if run("buildah", "info", check=False).returncode == 0:
                return


def stand_ins() -> dict[str, str]:
    """Images in place of those that compose.yaml names, by the variable that names them there."""
    context = FOLDER / "stand-ins"
    with locked():
        shutil.copytree(PROJECT / "tests/deploy/stand_ins", context, dirs_exist_ok=True)
        shutil.copyfile(PROJECT / "requirements/embedded.txt", context / "embedded.txt")
        shutil.copy2(find_caddy(), context / "caddy")
        names = {"POSTGRES_IMAGE": "postgres", "VALKEY_IMAGE": "valkey", "PROXY_IMAGE": "caddy"}
        return {
            variable: build(
                f"localhost/voucher-test-{target}",
                file=context / "Containerfile",
                context=context,
                arguments={"BASE": base()},
                volumes=wheels(),
                target=target,
            )
            for variable, target in names.items()
        }


def find_caddy() -> str:
    """The path of Caddy, from its wheel."""
    return str(Path(sys.executable).with_name("caddy"))
