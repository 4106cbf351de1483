from django.apps import AppConfig, apps
from django.contrib.auth.signals import user_logged_in


class AccountsConfig(AppConfig):
    name = "accounts"

    def ready(self) -> None:
        if not apps.is_installed("django.contrib.sessions"):
            return  # nobody signs in at an API process
        # These modules import models, which Django has loaded only now.
        from accounts.preferences.time_zones import note_preferences  # noqa: PLC0415
        from accounts.sign_in.lockouts import connect  # noqa: PLC0415
        from accounts.sign_in.second_factor import note_sign_in  # noqa: PLC0415
        from accounts.sign_in.sessions import limit_session  # noqa: PLC0415

        user_logged_in.connect(limit_session, dispatch_uid="accounts.limit_session")
        user_logged_in.connect(note_preferences, dispatch_uid="accounts.note_preferences")
        user_logged_in.disconnect(dispatch_uid="update_last_login")  # of Django
        user_logged_in.connect(note_sign_in, dispatch_uid="accounts.note_sign_in")
        connect()
