"""The page that a visitor requested before the site asked for a sign-in or a second factor.

The query's `next` carries it, as in Django's own sign-in.
"""

from django.http import HttpRequest
from django.urls import reverse
from django.utils.http import url_has_allowed_host_and_scheme


def ask_first(request: HttpRequest, page: str) -> str:
    """The address of the view `page`, with the page of this request as `next`.

    Only the page of a GET can be opened again.
    """
    query = {"next": request.get_full_path()} if request.method == "GET" else None
    return reverse(page, query=query)


def next_page(request: HttpRequest, start: str) -> str:
    """The address in `next`, as `own_page` accepts it."""
    return own_page(request.GET.get("next", ""), start)


def own_page(address: str, start: str) -> str:
    """`address`, if it is on the site that begins at the view `start`; else the address of `start`.

    An address of another host, or of another of our sites, is never followed.
    """
    first = reverse(start)
    own = url_has_allowed_host_and_scheme(address, allowed_hosts=None)
    return address if own and address.startswith(first) else first
