"""UNFOLD: the look of the back office."""

from django.urls import reverse_lazy

from core.texts import lazy

UNFOLD = {
    "SITE_TITLE": "Voucher & top-up service",
    "SITE_HEADER": "Voucher & top-up",
    "SITE_SUBHEADER": "operators.admin.menu.subheader",
    "SITE_SYMBOL": "confirmation_number",
    "SITE_URL": None,
    "SHOW_VIEW_ON_SITE": False,
    "SHOW_BACK_BUTTON": True,
    "SITE_FAVICONS": [
        {"rel": "icon", "type": "image/svg+xml", "href": "operators.admin.menu.icon"}
    ],
    "STYLES": ["operators.admin.menu.stylesheet"],
    "SCRIPTS": ["operators.admin.menu.script", "operators.admin.menu.shortcuts"],
    "DASHBOARD_CALLBACK": "operators.admin.menu.first_page",
    "TABS": "operators.admin.menu.tabs",
    "SIDEBAR": {"navigation": "operators.admin.menu.navigation"},
    "ACCOUNT": {
        "navigation": [
            {
                "title": lazy("Second factor"),
                "link": reverse_lazy("two_factor_enrol"),
                "words": lazy("2FA TOTP authenticator app codes"),
            },
            {"title": lazy("Language and time zone"), "link": reverse_lazy("time_zone")},
            {"title": lazy("Passkeys"), "link": reverse_lazy("passkeys")},
            {"title": "Telegram", "link": reverse_lazy("telegram_link")},
        ]
    },
    "COLORS": {
        "primary": {
            "50": "#eff6ff",
            "100": "#dbeafe",
            "200": "#bfdbfe",
            "300": "#93c5fd",
            "400": "#60a5fa",
            "500": "#3b82f6",
            "600": "#2563eb",
            "700": "#1d4ed8",
            "800": "#1e40af",
            "900": "#1e3a8a",
            "950": "#172554",
        }
    },
}
