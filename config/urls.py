"""Every path of the service, for one process that serves everything (config/settings.py)."""

from config import urls_api, urls_pages

urlpatterns = [*urls_api.urlpatterns, *urls_pages.urlpatterns]

handler400 = urls_pages.handler400
handler403 = urls_pages.handler403
handler404 = urls_pages.handler404
handler500 = urls_pages.handler500
