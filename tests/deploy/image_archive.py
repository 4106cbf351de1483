"""Writes an image to a file, on machines that reach no registry of images.

    IMAGE_COMMAND="python -m tests.deploy.image_archive" make release VERSION=1.2.0

The base is the one of the tests, made of Debian's packages.
"""

import sys

from embedded.environment import PROJECT
from tests.deploy.engine import base, build, locked, podman, wheels


def main(version: str, revision: str, file: str, target: str) -> None:
    name = f"localhost/{'voucher' if target == 'service' else f'voucher-{target}'}:{version}"
    with locked():
        build(
            name,
            file=PROJECT / "Containerfile",
            context=PROJECT,
            arguments={"BASE": base(), "VERSION": version, "REVISION": revision},
            volumes=wheels(),
            target=target,
        )
        podman("save", "--format=docker-archive", f"--output={file}", name, timeout=600)


if __name__ == "__main__":
    main(*sys.argv[1:])
