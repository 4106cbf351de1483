"""Checks the addresses of other servers: their form, their scheme and their options.

A wrong address ends the process with one line. Otherwise the first connection would fail, with a
traceback or in silence.
"""

import os
from collections.abc import Callable, Mapping
from pathlib import Path
from urllib.parse import parse_qsl, urlsplit

from core.environment.stop import stop_start

POSTGRES = ("postgresql", "postgres")
REDIS = ("redis", "rediss", "unix")
REDIS_BROKER = ("redis", "rediss")
RABBITMQ = ("amqp", "amqps", "pyamqp")
# The last two leave emails on this machine, about which `check` warns.
MAIL = ("smtp", "smtps", "smtp+tls", "smtp+ssl", "consolemail", "filemail")
WEB = ("https", "http")


def check_postgres(variable: str, url: str) -> None:
    """Ends the process unless libpq takes each option of this address."""
    check_address(variable, url, *POSTGRES)
    options = _options(variable, url)
    if not options:
        return
    from psycopg import pq  # noqa: PLC0415  probes read other variables without it
    from psycopg.conninfo import make_conninfo  # noqa: PLC0415

    known = {option.keyword.decode() for option in pq.Conninfo.get_defaults()}
    _check_names(variable, options, known - {"options"})  # the service sets `options` itself
    for name in ("sslrootcert", "sslcert", "sslkey", "sslcrl", "passfile"):
        if options.get(name) != "system":
            _check_file(variable, options, name)
    # libpq reads the values before it connects, here to a socket that does not exist.
    connection = pq.PGconn.connect_start(
        make_conninfo("", **{**options, "host": "/nonexistent"}).encode()
    )
    refused = connection.error_message.decode()
    connection.finish()
    for name in options:
        if refused.startswith(f"invalid {name} value"):
            _refuse_value(variable, name)


def check_redis(variable: str, url: str) -> None:
    """Ends the process unless this is an address of Redis or Valkey, with options for TLS."""
    check_address(variable, url, *REDIS)
    address = urlsplit(url)
    database = address.path.strip("/")
    if database and not database.isdecimal() and address.scheme != "unix":
        stop_start(variable, "must end with the number of a database, such as /0, or without one.")
    options = _options(variable, url)
    known: dict[str, Callable[[str], bool]] = {}
    if address.scheme == "rediss":
        known |= {
            "ssl_cert_reqs": ("required", "optional", "none").__contains__,
            "ssl_check_hostname": ("true", "false").__contains__,
            **dict.fromkeys(("ssl_ca_certs", "ssl_certfile", "ssl_keyfile"), _is_file),
        }
    if address.scheme == "unix":
        known |= {"db": str.isdecimal, "username": bool, "password": bool}
    _check_names(variable, options, known)
    for name, value in options.items():
        if not known[name](value):
            _refuse_value(variable, name)


def check_broker(variable: str, url: str) -> None:
    """Ends the process unless this is an address of Redis or Valkey, or addresses of RabbitMQ,
    separated by semicolons."""
    for one in url.split(";"):
        check_address(variable, one, *REDIS_BROKER, *RABBITMQ)
        if urlsplit(one).scheme in REDIS_BROKER:
            check_redis(variable, one)
        else:
            _check_names(variable, _options(variable, one), ())


def check_mail(variable: str, url: str) -> None:
    """Ends the process unless this is the address of a mail server."""
    check_address(variable, url, *MAIL)
    _check_names(variable, _options(variable, url), ())
    if url.startswith("smtp") and not urlsplit(url).hostname:
        stop_start(variable, "must name a mail server: smtp+tls://user:password@host:587.")


def check_web(variable: str, url: str) -> None:
    """Ends the process unless this is the address of a web server."""
    check_address(variable, url, *WEB)
    if not urlsplit(url).hostname:
        stop_start(variable, "must contain a host, such as https://api.example.com.")


def check_address(variable: str, url: str, *schemes: str) -> None:
    """Ends the process unless the address has one of these schemes, and can be read.

    A `/` or `@` in a password makes it unreadable. What reads it would report a piece of the
    password as a port or a host.
    """
    if not url.startswith(tuple(f"{scheme}://" for scheme in schemes)):
        *others, last = (f"{scheme}://" for scheme in schemes)
        stop_start(variable, f"must begin with {', '.join(others)} or {last}.")
    try:
        parts = urlsplit(url)
        is_valid = (parts.port or 1) and "@" not in parts.path + parts.query + parts.fragment
        is_valid = is_valid and parts.netloc.count("@") <= 1  # libpq ends a password at the first
    except ValueError:
        is_valid = False
    if not is_valid:
        stop_start(
            variable,
            "is no valid address. In a user name or password, write @ as %40, / as %2F, ? as %3F,"
            " # as %23, [ as %5B and % as %25.",
        )


def _options(variable: str, url: str) -> dict[str, str]:
    """The options after `?`."""
    pairs = parse_qsl(urlsplit(url).query, keep_blank_values=True)
    options = dict(pairs)
    if len(options) < len(pairs):
        stop_start(variable, "has an option twice. Remove one of them.")
    return options


def _check_names(variable: str, options: Mapping[str, str], known: object) -> None:
    for name in options:
        if name not in known:  # type: ignore[operator]
            shown = name if name.isidentifier() else "an option"
            stop_start(variable, f"has an option that is unknown here: {shown}. Remove it.")


def _check_file(variable: str, options: Mapping[str, str], name: str) -> None:
    if name in options and not _is_file(options[name]):
        _refuse_value(variable, name)


def _is_file(path: str) -> bool:
    return os.access(path, os.R_OK) and Path(path).is_file()


def _refuse_value(variable: str, option: str) -> None:
    stop_start(variable, f"has an option with a value that cannot be used: {option}.")
