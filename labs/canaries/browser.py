"""A browser without scripts: cookies, forms with their CSRF token, and redirects."""

import re
from collections.abc import Mapping
from http.cookies import SimpleCookie
from urllib.parse import urlencode, urlsplit

from tests.live import Answer, LiveServer

HIDDEN = re.compile(r'<input type="hidden" name="([^"]+)" value="([^"]*)"')
BOUNDARY = "a-line-that-no-form-contains"
TOKEN = re.compile(r'name="csrfmiddlewaretoken" value="([^"]+)"')


class Browser:
    """Keeps its cookies, and every session and CSRF token that it was ever sent."""

    def __init__(self, server: LiveServer, cookies: dict[str, str] | None = None) -> None:
        self._server = server
        self.cookies: dict[str, str] = cookies or {}
        self.sessions: set[str] = set()
        self.csrf_tokens: set[str] = set()

    def get(self, path: str) -> Answer:
        """Follows redirects within the site."""
        answer = self._send("GET", path, None)
        while answer.status_code in (301, 302):
            place = urlsplit(answer["Location"])
            path = place.path + (f"?{place.query}" if place.query else "")
            answer = self._send("GET", path, None)
        return answer

    def post(self, path: str, form: Mapping[str, object], *, follow: bool = True) -> Answer:
        """Opens the page for its hidden fields, then sends the form."""
        page = self.get(path).content.decode()
        hidden = dict(HIDDEN.findall(page))
        token = TOKEN.search(page)
        if token:
            hidden["csrfmiddlewaretoken"] = token[1]
            self.csrf_tokens.add(token[1])
        answer = self._send("POST", path, urlencode({**hidden, **form}).encode())
        if follow and answer.status_code == 302:
            return self.get(urlsplit(answer["Location"]).path)
        return answer

    def upload(self, path: str, form: Mapping[str, object], *, file: tuple[str, str]) -> Answer:
        """Opens the page for its hidden fields, then sends the form with a file: name and text."""
        hidden = dict(HIDDEN.findall(self.get(path).content.decode()))
        name, text = file
        parts = [
            f'Content-Disposition: form-data; name="{field}"\r\n\r\n{value}\r\n'
            for field, value in {**hidden, **form}.items()
        ]
        parts.append(
            f'Content-Disposition: form-data; name="file"; filename="{name}"\r\n'
            f"Content-Type: text/csv\r\n\r\n{text}\r\n"
        )
        body = "".join(f"--{BOUNDARY}\r\n{part}" for part in parts) + f"--{BOUNDARY}--\r\n"
        kind = f"multipart/form-data; boundary={BOUNDARY}"
        answer = self._send("POST", path, body.encode(), kind=kind)
        return self.get(answer["Location"]) if answer.status_code == 302 else answer

    def _send(
        self,
        method: str,
        path: str,
        body: bytes | None,
        *,
        kind: str = "application/x-www-form-urlencoded",
    ) -> Answer:
        headers = {"Cookie": "; ".join(f"{name}={value}" for name, value in self.cookies.items())}
        if body is not None:
            headers["Content-Type"] = kind
        answer = self._server.http.request(method, path, body, headers)
        for line in answer.headers.get_all("Set-Cookie") or ():
            for name, morsel in SimpleCookie(line).items():
                self.cookies[name] = morsel.value
                if len(morsel.value) >= 10:  # not one that is being deleted
                    kept = self.sessions if name == "sessionid" else self.csrf_tokens
                    kept.add(morsel.value)
        return answer
