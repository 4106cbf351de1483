"""The example programs of the docs pages."""

from pathlib import Path

SNIPPETS = Path(__file__).resolve().parents[1] / "snippets"


def _files_by_language(name: str) -> dict[str, str]:
    """The files of a program, with their headings on the page."""
    return {
        f"{name}.sh": "curl",
        f"{name}.py": "Python",
        f"{name}.mts": "TypeScript",
        f"{name}.php": "PHP",
        f"{name}.go": "Go",
        f"{name.capitalize()}.java": "Java",
    }


RETRY_SNIPPETS = _files_by_language("buy")
WAIT_SNIPPETS = _files_by_language("wait")
RECONCILE_SNIPPETS = _files_by_language("reconcile")
VERIFY = "verify_statement.py"
BOOKS = "books.sh"
SNIPPET_NAMES = [
    "first_calls.sh",
    *RETRY_SNIPPETS,
    *WAIT_SNIPPETS,
    *RECONCILE_SNIPPETS,
    VERIFY,
    BOOKS,
]


def snippet(name: str) -> str:
    """The text of a file in merchants/snippets/. Raises KeyError if it is not in SNIPPET_NAMES."""
    if name not in SNIPPET_NAMES:
        raise KeyError(name)
    return (SNIPPETS / name).read_text()
