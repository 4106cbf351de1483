"""The bot: fetches updates from Telegram, and answers texts and presses of buttons."""
