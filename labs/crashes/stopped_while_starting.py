"""A WSGI application whose server is asked to stop while it loads the application.

Granian loads the module in each web process. The module sends SIGTERM to granian's master, which
passes it on, and then takes another second to load.
"""

import os
import signal
import time

from core.http.stopping import stop_on_signals

if os.environ["HANDLE_SIGNALS"] == "1":
    stop_on_signals()
os.kill(os.getppid(), signal.SIGTERM)
time.sleep(1)


def application(environ, start_response):  # type: ignore[no-untyped-def]
    start_response("204 No Content", [])
    return [b""]
