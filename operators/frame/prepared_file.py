"""Files that a worker builds for staff: their progress and their parts."""

from uuid import UUID

from django.http import HttpRequest, HttpResponse
from django.urls import reverse
from django.views.decorators.http import require_POST, require_safe

from merchants.frame.file_pages import end_file, file_context, find_file, send_part
from operators.frame.base import site_page, staff_of


@require_safe
def show_file(request: HttpRequest, token: UUID) -> HttpResponse:
    """The progress of a file, and the link to it."""
    file = find_file(token, user=staff_of(request))
    return site_page(request, "admin/prepared_file.html", title=file.name, **file_context(file))


@require_POST
def cancel_prepared_file(request: HttpRequest, token: UUID) -> HttpResponse:
    """Deletes a file that waits or is being built."""
    file = find_file(token, user=staff_of(request))
    return end_file(request, file, reverse("prepared_file", args=[token]), "admin:index")


@require_safe
def send_file_part(request: HttpRequest, token: UUID, number: int) -> HttpResponse:
    return send_part(find_file(token, user=staff_of(request)), number)
