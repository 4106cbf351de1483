"""A browser without scripts: cookies, forms with their CSRF token, and redirects."""

import re
from collections.abc import Mapping

import requests

from tests.live import LiveServer

HIDDEN = re.compile(r'<input type="hidden" name="([^"]+)" value="([^"]*)"')


class Browser:
    """Keeps every session and CSRF token that it was ever sent."""

    def __init__(self, server: LiveServer, cookies: dict[str, str] | None = None) -> None:
        self._url = server.base_url
        self._http = requests.Session()
        self._http.cookies.update(cookies or {})
        self.sessions: set[str] = set()
        self.csrf_tokens: set[str] = set()

    def get(self, path: str) -> requests.Response:
        return self._kept(self._http.get(self._url + path))

    def post(
        self,
        path: str,
        form: Mapping[str, object],
        *,
        file: tuple[str, str] | None = None,
        follow: bool = True,
    ) -> requests.Response:
        """Reads the hidden fields of the page, then sends the form. `file` is a name and a text."""
        hidden = dict(HIDDEN.findall(self.get(path).text))
        self.csrf_tokens.add(hidden["csrfmiddlewaretoken"])
        return self._kept(
            self._http.post(
                self._url + path,
                data={**hidden, **{name: str(value) for name, value in form.items()}},
                files={"file": file} if file else None,
                allow_redirects=follow,
            )
        )

    def _kept(self, answer: requests.Response) -> requests.Response:
        for one in (*answer.history, answer):
            for name, value in one.cookies.items():
                (self.sessions if name == "sessionid" else self.csrf_tokens).add(str(value))
        return answer
