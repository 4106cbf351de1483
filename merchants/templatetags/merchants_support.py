"""Says at the foot of each page how merchants reach support."""

from django import template
from django.conf import settings
from django.core.exceptions import ValidationError
from django.core.validators import validate_email

register = template.Library()


@register.inclusion_tag("merchants/support.html")
def support_contact() -> dict[str, str]:
    """SUPPORT_CONTACT, as a link if it is an email address or a web address."""
    contact: str = settings.SUPPORT_CONTACT
    if contact.startswith("https://"):
        return {"contact": contact, "link": contact}
    try:
        validate_email(contact)
    except ValidationError:  # such as a name in a messenger
        return {"contact": contact, "link": ""}
    return {"contact": contact, "link": f"mailto:{contact}"}
