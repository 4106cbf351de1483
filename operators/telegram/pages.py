"""Telegram in the back office: settings, routes, linked staff, and the state of announcements."""

from __future__ import annotations

from functools import partial
from typing import Any

from django import forms
from django.conf import settings
from django.contrib import admin, messages
from django.db import transaction
from django.db.models import Max, QuerySet
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import reverse
from django.utils import timezone
from django.utils.formats import date_format
from django.utils.html import format_html_join
from django.utils.timezone import localtime
from django.utils.translation import gettext as _
from unfold.contrib.filters.admin import (
    ChoicesDropdownFilter,
    RangeDateTimeFilter,
    RelatedDropdownFilter,
)
from unfold.decorators import action, display

from audit.models import AuditAction
from core.queue import enqueue
from core.texts import lazy
from operators.frame.base import BackOfficeAdmin, RecordAdmin, link_to, linked, staff_of
from operators.frame.long_lists import LOOKED_AT, LongRecordAdmin
from operators.telegram.announcements import announce_again
from operators.telegram.chats import read_platform
from operators.telegram.models import (
    ONLY_ROW,
    Announcement,
    AnnouncementChat,
    AnnouncementRoute,
    AnnouncementState,
    PlatformSettings,
    TelegramLink,
)
from operators.telegram.staff_links import unlink_user
from orders.selectors import REFERENCE_PATTERN
from topups.models import Fulfilment

MAX_SELECTED = 100
STATES = {
    AnnouncementState.WAITING: "info",
    AnnouncementState.SENDING: "info",
    AnnouncementState.ANNOUNCED: "success",
    AnnouncementState.ENDED: None,
    AnnouncementState.GIVEN_UP: "danger",
}
CHATS_SHOWN = 20


class SettingsForm(forms.ModelForm):  # type: ignore[type-arg]
    def clean(self) -> dict[str, Any]:
        cleaned: dict[str, Any] = super().clean() or {}
        begin, end = cleaned.get("quiet_from"), cleaned.get("quiet_until")
        if (begin is None) != (end is None) or (begin is not None and begin == end):
            self.add_error(
                "quiet_until", _("Enter a different beginning and end, or leave both empty.")
            )
        if cleaned.get("topic_id") is not None and cleaned.get("chat_id") is None:
            self.add_error("topic_id", _("A topic belongs to a chat. Enter the chat too."))
        return cleaned


@admin.register(PlatformSettings)
class PlatformSettingsAdmin(BackOfficeAdmin):
    """The only row of settings, so its list leads to its form. It applies from the next order."""

    changed_action = AuditAction.SETTINGS_CHANGED
    form = SettingsForm
    help_texts = {"repeat_times": lazy("How many times an order is announced again, at most.")}
    readonly_fields = ("chats",)
    actions_submit_line = ("send_test_message",)
    fieldsets = (
        (None, {"fields": ("announcing", "chat_id", "topic_id")}),
        (lazy("Quiet hours"), {"fields": ("quiet_from", "quiet_until", "time_zone")}),
        (lazy("While nobody claims an order"), {"fields": ("repeat_minutes", "repeat_times")}),
        (lazy("Recent problems"), {"fields": ("chats",)}),
    )

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def get_object(self, request: HttpRequest, object_id: str, from_field: Any = None) -> Any:
        if object_id == str(ONLY_ROW):
            PlatformSettings.objects.get_or_create(pk=ONLY_ROW)
        return super().get_object(request, object_id, from_field)

    def changelist_view(self, request: HttpRequest, extra_context: Any = None) -> HttpResponse:
        if not self.has_view_or_change_permission(request):
            answer: HttpResponse = super().changelist_view(request, extra_context)  # refuses
            return answer
        return HttpResponseRedirect(
            reverse("admin:telegram_platformsettings_change", args=[ONLY_ROW])
        )

    def change_view(
        self, request: HttpRequest, object_id: str, form_url: str = "", extra_context: Any = None
    ) -> HttpResponse:
        context = {"show_back_button": "", **(extra_context or {})}  # its list leads here
        answer: HttpResponse = super().change_view(request, object_id, form_url, context)
        return answer

    def save_model(self, request: HttpRequest, obj: Any, form: Any, change: Any) -> None:
        super().save_model(request, obj, form, change)
        for button in self.get_actions_submit_line(request, obj.pk):
            if button.action_name in request.POST:
                button.method(request, obj)

    @action(description=lazy("Save and send a test message"))
    def send_test_message(self, request: HttpRequest, obj: PlatformSettings) -> None:
        """Queues a message to each chat. The web server does not load what calls Telegram."""
        if not settings.TELEGRAM_BOT_TOKEN:
            messages.error(request, _("Nothing was sent: the service runs without a bot."))
        elif not read_platform().targets():
            messages.error(request, _("Nothing was sent: there is no chat. Enter its ID."))
        else:
            sender = staff_of(request).pk
            transaction.on_commit(
                partial(enqueue, "operators.telegram.tasks.send_test_messages", sender)
            )
            messages.success(
                request,
                _(
                    "A test message goes to the chat, and to the chat of each route. If it does"
                    " not arrive within a minute, open this page again: “Recent problems” says"
                    " what Telegram answered."
                ),
            )

    @admin.display(description=lazy("chats"))
    def chats(self, platform: PlatformSettings) -> str:
        """The chats whose last message failed, with Telegram's error."""
        troubled = AnnouncementChat.objects.exclude(last_error="").order_by("chat_id")[:CHATS_SHOWN]
        rows = [(chat.chat_id, _pause(chat), chat.last_error) for chat in troubled]
        return format_html_join("", "<div>{}: {}{}</div>", rows) or _("None.")


@admin.register(AnnouncementRoute)
class AnnouncementRouteAdmin(BackOfficeAdmin):
    list_before_template = "admin/about_routes.html"
    list_display = ("orders_of", "kind", "chat_id", "topic_id")
    list_select_related = ("product", "category")
    autocomplete_fields = ("product", "category")
    search_fields = ("product__name", "category__name")
    ordering = ("id",)
    fields = ("product", "category", "chat_id", "topic_id")
    help_texts = {
        "product": lazy(
            "Choose a top-up product or a category. If both the product and its"
            " category have a route, the product's is used."
        ),
    }
    search_help_text = lazy("Top-up product or category")
    actions = None

    @admin.display(description=lazy("orders of"))
    def orders_of(self, route: AnnouncementRoute) -> str:
        return str(route)

    @admin.display(description=lazy("kind"))
    def kind(self, route: AnnouncementRoute) -> str:
        return _("top-up product") if route.product_id else _("category")


@admin.register(TelegramLink)
class TelegramLinkAdmin(RecordAdmin):
    """Shows and deletes links. Staff make them with a link code or the command `link_telegram`."""

    list_display = ("user", "telegram_user_id", "linked_at")
    list_select_related = ("user",)
    search_fields = ("user__username",)
    search_help_text = lazy("Username")
    fields = ("person", "telegram_user_id", "linked_at")
    person = linked("user")

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return request.user.has_perm("telegram.delete_telegramlink")

    def delete_model(self, request: HttpRequest, obj: TelegramLink) -> None:
        unlink_user(user=obj.user, actor=staff_of(request))


@admin.register(Announcement)
class AnnouncementAdmin(LongRecordAdmin):
    """Shows announcements. The only action announces orders again."""

    list_display_links = ("state_badge",)  # the first column links to the order
    list_display = (
        "order",
        "state_badge",
        "chat_id",
        "announced_at",
        "repeats",
        "lost",
        "last_error",
    )
    list_filter = (
        ("state", ChoicesDropdownFilter),
        ("fulfilment__product", RelatedDropdownFilter),
        ("announced_at", RangeDateTimeFilter),
    )
    list_select_related = ("fulfilment",)
    search_fields = ("fulfilment__order_reference",)
    search_help_text = lazy("Reference of an order")
    list_before_template = "admin/about_announcements.html"
    change_form_before_template = "admin/about_announcements.html"
    fields = (
        "order",
        "state",
        "chat_id",
        "topic_id",
        "message_id",
        "announced_at",
        "repeats",
        "repeated_at",
        "attempts",
        "lost",
        "last_error",
    )
    actions = ("announce_again_selected",)  # type: ignore[assignment]

    def search(
        self, queryset: QuerySet[Announcement], term: str, request: HttpRequest
    ) -> tuple[QuerySet[Announcement], bool]:
        """Finds any announcement by the whole reference, and newer ones by a part of it."""
        if not term:
            return queryset, False
        if REFERENCE_PATTERN.fullmatch(term.upper()):
            return queryset.filter(fulfilment__order_reference=term.upper()), False
        newest = Fulfilment.objects.aggregate(newest=Max("pk"))["newest"] or 0
        recent = Fulfilment.objects.filter(pk__gt=newest - LOOKED_AT)
        ids = recent.filter(order_reference__contains=term.upper()).values_list("pk", flat=True)
        return queryset.filter(fulfilment__in=list(ids)), False

    def get_actions(self, request: HttpRequest) -> Any:
        actions = super().get_actions(request)
        return actions if staff_of(request).has_perm("telegram.announce_again") else {}

    @admin.action(description=lazy("Announce again"))
    def announce_again_selected(
        self, request: HttpRequest, queryset: QuerySet[Announcement]
    ) -> None:
        results = [
            announce_again(announcement=row, actor=staff_of(request))
            for row in queryset.select_related("fulfilment").order_by("pk")[:MAX_SELECTED]
        ]
        if any(results):
            messages.success(
                request,
                _("Orders that will be announced again: %(number)s.") % {"number": sum(results)},
            )
        if not all(results):
            left = len(results) - sum(results)
            messages.warning(
                request,
                _(
                    "Orders skipped: %(number)s. They are not waiting for an operator, or"
                    " they are being announced now."
                )
                % {"number": left},
            )

    @admin.display(description=lazy("order"))
    def order(self, row: Announcement) -> str:
        return link_to(row.fulfilment)

    @display(description=lazy("state"), label={state.value: look for state, look in STATES.items()})
    def state_badge(self, row: Announcement) -> tuple[str, str]:
        return row.state, AnnouncementState(row.state).label

    @admin.display(description=lazy("lost responses"))
    def lost(self, row: Announcement) -> str:
        return str(row.lost_answers)


def _pause(chat: AnnouncementChat) -> str:
    if chat.paused_until is None or chat.paused_until <= timezone.now():
        return ""
    return _("paused until %(time)s. ") % {
        "time": date_format(localtime(chat.paused_until), "TIME_FORMAT")
    }
