"""The paths of a process that serves pages for people (config/settings_pages.py)."""

from django.conf import settings
from django.contrib import admin
from django.urls import include, path
from django.views.generic import TemplateView

from config import error_pages
from core.http.readiness import healthz, readyz
from core.texts import lazy
from operators.admin import site  # noqa: F401  registers the pages
from operators.admin.action_forms import begin, find_batches
from operators.admin.menu import entrance
from operators.admin.search import search
from operators.frame.prepared_file import cancel_prepared_file, send_file_part, show_file
from operators.history.audit_trail_page import export_trail, show_revealed_codes, show_trail
from operators.history.timeline import add_note
from operators.money.month_end import show_month_end
from operators.sales.margins import export_margins, show_margins
from operators.sign_in import passkeys, second_factor, time_zone
from operators.sign_in.asked_changes import end_request
from operators.sign_in.password import change_password
from operators.sign_in.password_pages import ask_link, set_password
from operators.telegram.link_page import link as link_telegram
from operators.upkeep.monitoring.readiness import readyz_bot, readyz_worker
from operators.upkeep.monitoring.system_page import show_system, show_system_now

company_sign_in = (
    [path("", include("operators.sign_in.company.urls"))] if settings.COMPANY_SIGN_IN else []
)

landing = TemplateView.as_view(
    template_name="landing.html",
    extra_context={"title": lazy("Buy voucher codes and game top-ups")},
    http_method_names=["get", "head"],
)

urlpatterns = [
    path("", landing, name="landing"),
    path("docs/", include("merchants.urls_docs")),
    path("admin/two-factor/", admin.site.admin_view(second_factor.check), name="two_factor"),
    path(
        "admin/two-factor/enrol/",
        admin.site.admin_view(second_factor.enrol),
        name="two_factor_enrol",
    ),
    path("admin/time-zone/", admin.site.admin_view(time_zone.choose), name="time_zone"),
    path("admin/forgotten/", ask_link, name="staff_forgotten"),
    path("admin/new-password/", set_password, name="staff_password"),
    path("admin/system/", admin.site.admin_view(show_system), name="system"),
    path("admin/system/now/", admin.site.admin_view(show_system_now), name="system_now"),
    path("admin/notes/<str:label>/<str:pk>/", admin.site.admin_view(add_note), name="note"),
    path("admin/search/", admin.site.admin_view(search), name="search"),
    path("admin/begin/hold/batches/", admin.site.admin_view(find_batches), name="find_batches"),
    path("admin/begin/<slug:name>/", admin.site.admin_view(begin), name="begin"),
    path("admin/requests/<int:pk>/end/", admin.site.admin_view(end_request), name="end_request"),
    path("admin/margins/", admin.site.admin_view(show_margins), name="margins"),
    path("admin/margins/file/", admin.site.admin_view(export_margins), name="margins_file"),
    path("admin/month-end/", admin.site.admin_view(show_month_end), name="month_end"),
    path("admin/trail/", admin.site.admin_view(show_trail), name="audit_trail"),
    path("admin/trail/file/", admin.site.admin_view(export_trail), name="audit_trail_file"),
    path("admin/trail/codes/", admin.site.admin_view(show_revealed_codes), name="who_saw_codes"),
    path("admin/files/<uuid:token>/", admin.site.admin_view(show_file), name="prepared_file"),
    path(
        "admin/files/<uuid:token>/cancel/",
        admin.site.admin_view(cancel_prepared_file),
        name="cancel_prepared_file",
    ),
    path(
        "admin/files/<uuid:token>/<int:number>/",
        admin.site.admin_view(send_file_part),
        name="prepared_file_part",
    ),
    path("admin/passkeys/", admin.site.admin_view(passkeys.list_passkeys), name="passkeys"),
    path(
        "admin/passkeys/<int:passkey>/remove/",
        admin.site.admin_view(passkeys.remove),
        name="passkey_remove",
    ),
    path("admin/passkeys/", include("operators.sign_in.passkeys")),
    path("admin/telegram-link/", admin.site.admin_view(link_telegram), name="telegram_link"),
    path("admin/password_change/", admin.site.admin_view(change_password)),
    *company_sign_in,
    path("admin/", entrance),  # replaces the admin's own index page
    path("admin/", admin.site.urls),
    path("merchant/", include("merchants.urls")),
    path("healthz", healthz),
    path("readyz", readyz),
    path("readyz/bot", readyz_bot),
    path("readyz/worker", readyz_worker),
]

handler400 = error_pages.bad_request
handler403 = error_pages.permission_denied
handler404 = error_pages.not_found
handler500 = error_pages.server_error
