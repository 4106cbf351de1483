"""The current platform settings and routes."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from zoneinfo import ZoneInfo

from operators.models import ONLY_ROW, AnnouncementRoute, PlatformSettings


@dataclass(frozen=True)
class Target:
    """A chat, or one topic in it."""

    chat_id: int
    topic_id: int | None = None


@dataclass(frozen=True)
class Platform:
    """The settings and routes as they were when they were read."""

    settings: PlatformSettings
    products: dict[int, Target]
    categories: dict[int, Target]

    @property
    def zone(self) -> ZoneInfo:
        return ZoneInfo(self.settings.time_zone)

    def target_of(self, *, product_id: int, category_id: int | None) -> Target | None:
        """The chat for orders of this top-up product; None if they are not announced."""
        if product_id in self.products:
            return self.products[product_id]
        if category_id is not None and category_id in self.categories:
            return self.categories[category_id]
        if self.settings.chat_id is None:
            return None
        return Target(self.settings.chat_id, self.settings.topic_id)

    def announces(self, now: datetime) -> bool:
        """Whether orders may be announced now."""
        return self.settings.announcing and not is_quiet(self.settings, now)


def read_platform() -> Platform:
    """Two queries."""
    routes = list(AnnouncementRoute.objects.all())
    return Platform(
        settings=platform_settings(),
        products={r.product_id: _target(r) for r in routes if r.product_id is not None},
        categories={r.category_id: _target(r) for r in routes if r.category_id is not None},
    )


def platform_settings() -> PlatformSettings:
    """The one row, or the defaults (announcing off) if none was saved yet."""
    return PlatformSettings.objects.filter(pk=ONLY_ROW).first() or PlatformSettings()


def is_quiet(settings: PlatformSettings, now: datetime) -> bool:
    """Whether `now` is in the quiet hours, which may span midnight."""
    begin, end = settings.quiet_from, settings.quiet_until
    if begin is None or end is None:
        return False
    clock = now.astimezone(ZoneInfo(settings.time_zone)).time().replace(tzinfo=None)
    return begin <= clock < end if begin < end else clock >= begin or clock < end


def _target(route: AnnouncementRoute) -> Target:
    return Target(route.chat_id, route.topic_id)
