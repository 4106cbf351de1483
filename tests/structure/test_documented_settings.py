"""docs/operate/configure.md lists every environment variable of the service, with its default."""

import ast
import re
from collections.abc import Iterator

from embedded.environment import PROJECT

PAGE = PROJECT / "docs" / "operate" / "configure.md"
COMPANY_SIGN_IN = PROJECT / "operators" / "sign_in" / "company" / "settings.py"
UNKNOWN = "no literal"  # a default that the code computes


def documented() -> dict[str, str]:
    """The default of each variable on the page; empty for an unset one."""
    rows = re.findall(r"^\| `([A-Z_]+)` \| (?:`(.*?)` )?\|", PAGE.read_text(), re.MULTILINE)
    names = [name for name, _ in rows]
    assert len(names) == len(set(names)), "a variable has two rows"
    return dict(rows)


def read() -> dict[str, str]:
    """The default of each variable that a settings module reads with `env.…("NAME", default)`."""
    found = {}
    for path in (*sorted((PROJECT / "config").glob("*.py")), COMPANY_SIGN_IN):
        for call in _calls_of_env(ast.parse(path.read_text())):
            name = ast.literal_eval(call.args[0])
            found[name] = _default(call)
    return found


def _calls_of_env(tree: ast.Module) -> Iterator[ast.Call]:
    for node in ast.walk(tree):
        match node:
            case ast.Call(
                func=ast.Attribute(value=ast.Name(id="env")), args=[ast.Constant(str()), *_]
            ):
                yield node


def _default(call: ast.Call) -> str:
    values = [*call.args[1:], *(word.value for word in call.keywords if word.arg == "default")]
    match values:
        case [ast.Constant(value=value)]:
            return str(value)
        case [] | [ast.List(elts=[])]:
            return ""
        case _:
            return UNKNOWN


def test_each_variable_has_a_row() -> None:
    assert sorted(documented()) == sorted(read())


def test_the_defaults_are_those_of_the_code() -> None:
    page = documented()
    wrong = {
        name: (default, page[name])
        for name, default in read().items()
        if default not in (page[name], UNKNOWN)
    }
    assert not wrong
