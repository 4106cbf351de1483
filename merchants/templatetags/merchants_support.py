"""Says at the foot of each page how merchants reach support."""

from django import template
from django.conf import settings

register = template.Library()


@register.inclusion_tag("merchants/support.html")
def support_contact() -> dict[str, str]:
    """SUPPORT_CONTACT, as a link if it is an email address or a web address."""
    contact: str = settings.SUPPORT_CONTACT
    if contact.startswith("https://"):
        return {"contact": contact, "link": contact}
    return {"contact": contact, "link": f"mailto:{contact}" if "@" in contact else ""}
