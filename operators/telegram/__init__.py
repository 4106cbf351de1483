"""Work on orders in Telegram: orders are announced in a chat, and buttons move them."""

import os

# Makes python-telegram-bot return durations as timedelta; integers are deprecated.
os.environ["PTB_TIMEDELTA"] = "true"
