"""Gives the functions of a running process the code of a mutated file.

A mutant runs in a process that has already imported everything, so importing the file again would
leave other modules with the old functions. Instead, each function of the file gets its new code
wherever it is kept: in a module, in a class, behind a decorator. A text that a module or class
holds (SQL, mostly) is replaced in whatever holds it.
"""

import functools
import gc
import os
from collections.abc import Iterator
from types import CodeType, FunctionType
from typing import Any

from labs.mutants.mutant import FOLDER, PROJECT, Mutant, Stale

FunctionName = tuple[str, int]  # the qualified name and the first line of a function


def apply_python(mutant: Mutant) -> None:
    """Mutates this process. Raises Stale if the change is outside functions and texts."""
    gc.unfreeze()  # the tests froze what they loaded; `get_objects` leaves that out
    path = PROJECT / mutant.file
    before = compile(path.read_text(), str(path), "exec", dont_inherit=True)
    after = compile(mutant.text, str(path), "exec", dont_inherit=True)
    old, new = list(_codes(before)), list(_codes(after))
    if [code.co_qualname for code in old] != [code.co_qualname for code in new]:
        raise Stale(f"{mutant.name}: adds or removes a function")
    replaced = _replace_functions(str(path), dict(zip(map(_function_name, old), new, strict=True)))
    for was, becomes in zip(old, new, strict=True):
        if _facts(was) != _facts(becomes) and not _inside(was, replaced):
            _replace_texts(mutant, was, becomes)
    _forget_results(str(path))
    tell_processes(str(path), mutant.text)


def _codes(code: CodeType) -> Iterator[CodeType]:
    """This code and every code inside it."""
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _codes(constant)


def _function_name(code: CodeType) -> FunctionName:
    return code.co_qualname, code.co_firstlineno


def _facts(code: CodeType) -> tuple[Any, ...]:
    """The instructions of a code itself, apart from line numbers and from the codes inside it."""
    constants = [item for item in code.co_consts if not isinstance(item, CodeType)]
    return code.co_code, code.co_names, code.co_varnames, code.co_freevars, repr(constants)


def _replace_functions(path: str, codes: dict[FunctionName, CodeType]) -> list[str]:
    """Returns the qualified names of the functions that have new code."""
    replaced = []
    for item in gc.get_objects():
        if type(item) is FunctionType and item.__code__.co_filename == path:
            item.__code__ = codes[_function_name(item.__code__)]
            replaced.append(item.__code__.co_qualname)
    return replaced


def _inside(code: CodeType, functions: list[str]) -> bool:
    """Whether the code is that of a replaced function, or is inside one."""
    return any(
        code.co_qualname == name or code.co_qualname.startswith(f"{name}.<locals>.")
        for name in functions
    )


def _replace_texts(mutant: Mutant, was: CodeType, becomes: CodeType) -> None:
    """Replaces the changed texts of a module or class in every object that holds them."""
    changed = [
        (before, after)
        for before, after in zip(was.co_consts, becomes.co_consts, strict=False)
        if isinstance(before, str) and isinstance(after, str) and before != after
    ]
    if was.co_code != becomes.co_code or not changed:
        raise Stale(f"{mutant.name}: changes code that runs only while it is imported")
    for before, after in changed:
        holders = [
            (names, name)
            for names in _namespaces()
            for name, value in list(names.items())
            if type(value) is str and before in value  # or before is a part of an f-string
        ]
        if not holders:
            raise Stale(f"{mutant.name}: nothing holds the changed text")
        for names, name in holders:
            names[name] = names[name].replace(before, after)


def _namespaces() -> Iterator[dict[Any, Any]]:
    """Every dictionary, and the attributes of every dataclass."""
    for item in gc.get_objects():
        if type(item) is dict:
            yield item
        elif hasattr(type(item), "__dataclass_fields__") and hasattr(item, "__dict__"):
            yield vars(item)


def _forget_results(path: str) -> None:
    """Empties the caches of the file's functions."""
    for item in gc.get_objects():
        if type(item) is functools._lru_cache_wrapper:
            code = getattr(item.__wrapped__, "__code__", None)
            if code is not None and code.co_filename == path:
                item.cache_clear()


def tell_processes(path: str, text: str) -> None:
    """Has processes that tests start from now on import the mutated file."""
    mutated = PROJECT / "var" / "mutant.py"
    mutated.parent.mkdir(exist_ok=True)
    mutated.write_text(text)
    os.environ |= {
        "PYTHONPATH": str(FOLDER / "processes"),
        "MUTANT_FILE": path,
        "MUTANT_TEXT": str(mutated),
    }
