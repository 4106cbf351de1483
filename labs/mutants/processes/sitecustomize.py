"""Gives processes that tests start (a web server, a bot, a worker) the code of the mutant.

Python imports this module at its start, because a fork puts this folder into PYTHONPATH.
"""

import os
from importlib.machinery import SourceFileLoader
from pathlib import Path
from types import CodeType
from typing import Any

MUTATED, TEXT = os.environ["MUTANT_FILE"], os.environ["MUTANT_TEXT"]
_get_code = SourceFileLoader.get_code


def _code(loader: Any, name: str) -> CodeType | None:
    """The code of a module: of the mutated text if the module is the mutated file."""
    if loader.path == MUTATED:
        return compile(Path(TEXT).read_text(), MUTATED, "exec", dont_inherit=True)
    code: CodeType | None = _get_code(loader, name)
    return code


SourceFileLoader.get_code = _code  # type: ignore[assignment, method-assign]
