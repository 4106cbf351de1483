"""A folder of the product has at most fifteen modules, so a reader can take it in at a glance."""

import tomllib
from pathlib import Path

from embedded.environment import PROJECT

MOST = 15
PYPROJECT = tomllib.loads((PROJECT / "pyproject.toml").read_text())
PACKAGES = {*PYPROJECT["tool"]["importlinter"]["root_packages"]} - {"tests", "labs"}


def crowded_folders(root: Path) -> dict[str, int]:
    """The folders with too many modules. `__init__.py` and migrations do not count."""
    counts: dict[str, int] = {}
    for file in root.rglob("*.py"):
        folder = file.parent.relative_to(root.parent)
        if file.name != "__init__.py" and not {"migrations", "node_modules"} & {*folder.parts}:
            counts[str(folder)] = counts.get(str(folder), 0) + 1
    return {folder: count for folder, count in counts.items() if count > MOST}


def test_no_folder_of_the_product_is_crowded() -> None:
    crowded = [crowded_folders(PROJECT / package) for package in sorted(PACKAGES)]

    assert crowded == [{}] * len(PACKAGES)


def test_the_count_finds_a_crowded_folder(tmp_path: Path) -> None:
    for name, modules in {"full": MOST, "crowded": MOST + 1, "migrations": MOST + 1}.items():
        folder = tmp_path / "app" / name
        folder.mkdir(parents=True)
        for module in ["__init__", *(f"module_{number}" for number in range(modules))]:
            (folder / f"{module}.py").touch()

    assert crowded_folders(tmp_path / "app") == {"app/crowded": MOST + 1}
