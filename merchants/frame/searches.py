"""Keeps the text of a search in the address of its result, encrypted.

A text may be a player id or a code, which no address may hold, and neither may a page's history or
a log. So it is sent in the body of a POST, and the address of the result holds it encrypted with a
key of this session: Back, reload and a second tab show the result again. Nothing is stored. The
key ends with the session (docs/decisions/0056-search.md).
"""

import base64

from cryptography.fernet import Fernet, InvalidToken
from django import forms
from django.contrib import messages
from django.http import HttpRequest, HttpResponseRedirect, QueryDict
from django.urls import reverse
from django.utils.crypto import salted_hmac
from django.utils.translation import gettext as _

TEXT = "search"  # the parameter of the encrypted text


def read_query(request: HttpRequest) -> QueryDict:
    """The fields of the form that was sent, or of the address, with the decrypted text as `q`.

    A `q` of an address is ignored. A text of another session gives a message.
    """
    if request.method == "POST":
        return request.POST.copy()
    query = request.GET.copy()
    query.pop("q", None)
    token = "".join(query.pop(TEXT, [])[-1:])
    if token:
        try:
            query["q"] = _cipher(request).decrypt(token.encode()).decode()
        except InvalidToken:
            messages.warning(
                request, _("The text of this search can no longer be read. Type it again.")
            )
    return query


def redirect_to_result(request: HttpRequest, page: str, form: forms.Form) -> HttpResponseRedirect:
    """Redirects to the page with the fields of the valid form that was sent, the text encrypted."""
    values = {name: request.POST[name] for name in form.fields if request.POST.get(name)}
    values.pop("q", None)
    if text := form.cleaned_data["q"]:
        values[TEXT] = _cipher(request).encrypt(text.encode()).decode()
    return HttpResponseRedirect(reverse(page, query=values))


def _cipher(request: HttpRequest) -> Fernet:
    key = salted_hmac(__name__, str(request.session.session_key), algorithm="sha256").digest()
    return Fernet(base64.urlsafe_b64encode(key))
