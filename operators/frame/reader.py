"""The reader of a back office page: Django calls the methods of columns without the request."""

from collections.abc import Callable
from contextvars import ContextVar

from django.apps import apps
from django.contrib import admin
from django.db.models import Model
from django.http import HttpRequest, HttpResponse

_page_request: ContextVar[HttpRequest | None] = ContextVar("page request", default=None)


class ReaderMiddleware:
    """Keeps the request for `reader_may_view` until its page is rendered."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        token = _page_request.set(request)
        try:
            return self.get_response(request)
        finally:
            _page_request.reset(token)


def registered_models() -> list[type[Model]]:
    """The models that have pages in the back office."""
    return [model for model in apps.get_models() if admin.site.is_registered(model)]


def may_view(request: HttpRequest, model: type[Model]) -> bool:
    """Whether the reader may see the pages of this model."""
    if not admin.site.is_registered(model):
        return False
    return admin.site.get_model_admin(model).has_view_permission(request)


def reader_has(permission: str) -> bool:
    """Whether the person whose page is being made has the permission."""
    request = _page_request.get()
    return request is not None and request.user.has_perm(permission)


def is_reader(user_id: int | None) -> bool:
    """Whether this is the person whose page is being made."""
    request = _page_request.get()
    return request is not None and request.user.pk == user_id


def reader_may_view(model: type[Model]) -> bool:
    """Whether the person whose page is being made may see the pages of this model."""
    request = _page_request.get()
    return request is not None and may_view(request, model)
