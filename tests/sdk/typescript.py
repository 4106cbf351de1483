"""The TypeScript library for tests: compiles it, and finds an old and a new Node.js."""

import subprocess
from pathlib import Path

from embedded.environment import PROJECT
from tests.sdk.npm import alone, install

LIBRARY = PROJECT / "sdk" / "typescript"
NODES = Path(__file__).parent  # its package.json lists versions of Node.js


def build() -> None:
    """Compiles the library, unless it is compiled."""
    install(LIBRARY)
    with alone(LIBRARY):
        built = LIBRARY / "dist" / "cjs" / "package.json"
        sources = max(path.stat().st_mtime for path in (LIBRARY / "src").iterdir())
        if not built.exists() or built.stat().st_mtime < sources:
            subprocess.run(["node", "build.mjs"], cwd=LIBRARY, check=True)


def oldest_node() -> str:
    """The oldest Node.js with which the library works."""
    return str(install(NODES) / "node-18" / "bin" / "node")


def newest_node() -> str:
    """A Node.js with `node:sqlite`."""
    return str(install(NODES) / "node-24" / "bin" / "node")
