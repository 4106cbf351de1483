"""What stops the embedded servers."""


class EmbeddedError(Exception):
    """Says in one line what is wrong and what to do; shown to the person without a traceback."""
