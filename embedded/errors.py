"""The errors of the embedded servers."""


class EmbeddedError(Exception):
    """Stops the command. The message says in one line what failed and what to do."""


class PortTakenError(EmbeddedError):
    """A server did not start because another program took its port a moment ago."""
