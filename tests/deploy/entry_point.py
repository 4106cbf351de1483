"""What deploy/container/start starts for each word, read from the script."""

import re
import shlex

from embedded.environment import PROJECT

START = PROJECT / "deploy" / "container" / "start"
DEFAULTS = {"LISTEN": "0.0.0.0", "PORT": "8000"}


def commands() -> dict[str, list[str]]:
    """The command of each word, with the defaults of its variables and without further words."""
    script = START.read_text().replace("\\\n", " ")
    web = _exec(script[script.index("web()") :])
    cases = re.findall(r"^  ([a-z |]+)\)\s+(web|exec) (.*)$", script, re.MULTILINE)
    found = {}
    for words, how, _ in cases:
        for word in words.split(" | "):
            found[word] = web if how == "web" else _exec(script[script.index(f"\n  {words})") :])
    return found


def _exec(text: str) -> list[str]:
    found = re.search(r'exec (.*?) "\$@"', text)
    assert found
    line = re.sub(r"\$\{(\w+):-(.*?)\}", lambda match: DEFAULTS[match[1]], found[1])
    return [word.removeprefix("/app/") for word in shlex.split(line)]
