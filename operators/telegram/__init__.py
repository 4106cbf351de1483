"""The operators' work from Telegram: orders are announced in a chat, and moved by its buttons."""

import os

# How python-telegram-bot is to give lengths of time; the other way is deprecated.
os.environ["PTB_TIMEDELTA"] = "true"
