"""The error of the embedded servers."""


class EmbeddedError(Exception):
    """Stops the command. The message says in one line what failed and what to do."""
