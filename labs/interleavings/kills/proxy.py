"""A proxy between one process and PostgreSQL that acts at one call.

It knows only where messages of the frontend protocol end. A call is everything up to a Query (`Q`)
or Sync (`S`) message; its result ends with ReadyForQuery (`Z`). At the chosen call, either the call
stays in the proxy and never reaches the server, or its result stays there and never reaches the
process. Then `act` kills one of the two.
"""

import contextlib
import socket
import struct
import threading
from collections.abc import Callable, Iterator
from enum import StrEnum

END_OF_CALL = b"QS"
READY, BACKEND_KEY = b"Z", b"K"
UNENCRYPTED = b"?"  # stands for a request of TLS or GSS, which the proxy declines
LENGTH = struct.Struct("!I")


class When(StrEnum):
    BEFORE = "before"  # the call reaches the server
    AFTER = "after"  # its result leaves the server, before the process reads it


class Proxy:
    """Forwards connections, counts their calls, and acts once."""

    def __init__(self, server: tuple[str, int], *, call: int, when: When) -> None:
        self.calls = 0  # so far
        self.acted = False
        self.backend = 0  # process id of the server process of the last connection
        self.act: Callable[[], None] = lambda: None
        self._server, self._call, self._when = server, call, when
        self._lock = threading.Lock()
        self._open: list[socket.socket] = []
        self._threads: list[threading.Thread] = []
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]

    def start(self) -> None:
        """Accepts connections from now on. Earlier ones wait."""
        self._run(self._accept)

    def close(self) -> None:
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        for end in self._open:
            _close(end)
        for thread in self._threads:
            thread.join(10)

    def _run(self, target: Callable[..., None], *arguments: object) -> None:
        thread = threading.Thread(target=target, args=arguments)
        self._threads.append(thread)
        thread.start()

    def _accept(self) -> None:
        while True:
            try:
                process, _ = self._listener.accept()
            except OSError:
                return
            try:
                server = socket.create_connection(self._server)
            except OSError:  # it is just restarting
                _close(process)
                continue
            self._open += [process, server]
            connection = _Connection()
            self._run(self._from_process, process, server, connection)
            self._run(self._from_server, server, process, connection)

    def _from_process(
        self, process: socket.socket, server: socket.socket, connection: "_Connection"
    ) -> None:
        with _closing(process, server):
            pending = b""
            for kind, message in _messages(process, starts=True):
                if kind == UNENCRYPTED:
                    process.sendall(b"N")
                    continue
                pending += message
                if kind not in END_OF_CALL:
                    if kind in b"pdcfX":  # the server waits for nothing else to read these
                        server.sendall(pending)
                        pending = b""
                    continue
                if self._is_chosen(connection) and self._when is When.BEFORE:
                    self._act()
                    return
                server.sendall(pending)
                pending = b""

    def _from_server(
        self, server: socket.socket, process: socket.socket, connection: "_Connection"
    ) -> None:
        with _closing(process, server):
            for kind, message in _messages(server):
                if kind == BACKEND_KEY:
                    self.backend = LENGTH.unpack(message[5:9])[0]
                if kind == READY and connection.answered_chosen():
                    self._act()
                    return
                process.sendall(message)

    def _is_chosen(self, connection: "_Connection") -> bool:
        with self._lock:
            self.calls += 1
            chosen = self.calls == self._call
        connection.sent(chosen)
        return chosen

    def _act(self) -> None:
        self.acted = True
        self.act()


class _Connection:
    """Which of its calls have no result yet."""

    def __init__(self) -> None:
        self._waiting: list[bool] = []
        self._started = False

    def sent(self, chosen: bool) -> None:
        self._waiting.append(chosen)

    def answered_chosen(self) -> bool:
        if not self._started:  # the first ReadyForQuery ends the start of the connection
            self._started = True
            return False
        return self._waiting.pop(0)


def _messages(source: socket.socket, *, starts: bool = False) -> Iterator[tuple[bytes, bytes]]:
    """Yields each message with its type, until the connection ends. The first message of a process
    has no type; it is yielded as `p`."""
    buffer, first = b"", starts
    while True:
        head = 0 if first else 1
        while len(buffer) >= head + 4:
            size = head + LENGTH.unpack_from(buffer, head)[0]
            if len(buffer) < size:
                break
            message, buffer = buffer[:size], buffer[size:]
            request = first and size == 8  # another first message follows
            yield (UNENCRYPTED if request else b"p" if first else message[:1]), message
            if not request:
                first, head = False, 1
        try:
            received = source.recv(65536)
        except OSError:
            return
        if not received:
            return
        buffer += received


@contextlib.contextmanager
def _closing(*ends: socket.socket) -> Iterator[None]:
    try:
        yield
    except OSError:
        pass
    finally:
        for end in ends:
            _close(end)


def _close(end: socket.socket) -> None:
    with contextlib.suppress(OSError):
        end.shutdown(socket.SHUT_RDWR)
    end.close()
