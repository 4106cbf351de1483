"""Servers that misbehave."""

import socket
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field

from embedded.processes import free_port
from tests.live import HOST


@dataclass
class SilentServer:
    """A server that accepts connections and never sends anything."""

    port: int
    connections: int = 0  # accepted so far


@contextmanager
def silent_server() -> Iterator[SilentServer]:
    """Runs a SilentServer in a thread of this process."""
    accepted: list[socket.socket] = []
    with socket.create_server((HOST, free_port())) as listener:
        server = SilentServer(listener.getsockname()[1])

        def accept() -> None:
            while True:
                try:
                    accepted.append(listener.accept()[0])
                except OSError:  # the test is over
                    return
                server.connections += 1

        thread = threading.Thread(target=accept)
        thread.start()
        try:
            yield server
        finally:
            listener.shutdown(socket.SHUT_RDWR)
            thread.join()
            for connection in accepted:
                connection.close()


# What a ScriptedCache sends after a count: a line, or pieces and pauses in seconds. None closes.
Reply = bytes | list[bytes | float] | None


@dataclass
class ScriptedCache:
    """A cache that replies to counts as a test says, and to other commands with OK."""

    url: str
    connections: int = 0
    commands: list[str] = field(default_factory=list)  # without those that open a connection


@contextmanager
def scripted_cache(replies: Sequence[Reply]) -> Iterator[ScriptedCache]:
    """Runs a ScriptedCache, which serves one connection after the other, in a thread."""
    left = list(replies)
    with socket.create_server((HOST, free_port())) as listener:
        cache = ScriptedCache(f"redis://{HOST}:{listener.getsockname()[1]}/0")

        def serve(connection: socket.socket) -> None:
            with connection, connection.makefile("rb") as stream:
                while head := stream.readline():
                    words = [
                        stream.read(int(stream.readline()[1:]) + 2) for _ in range(int(head[1:]))
                    ]
                    command = words[0].decode().strip()
                    if command not in ("INCRBY", "EXPIRE"):
                        connection.sendall(b"+OK\r\n")
                        continue
                    cache.commands.append(command)
                    reply = left.pop(0)
                    if reply is None:
                        return
                    for piece in [reply + b"\r\n"] if isinstance(reply, bytes) else reply:
                        if isinstance(piece, bytes):
                            connection.sendall(piece)
                        else:
                            time.sleep(piece)

        def accept() -> None:
            while True:
                try:
                    connection = listener.accept()[0]
                except OSError:  # the test is over
                    return
                cache.connections += 1
                with suppress(OSError):  # the client closed
                    serve(connection)

        thread = threading.Thread(target=accept)
        thread.start()
        try:
            yield cache
        finally:
            listener.shutdown(socket.SHUT_RDWR)
            thread.join(10)
