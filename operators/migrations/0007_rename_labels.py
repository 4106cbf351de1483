"""Words that people read. It runs no SQL."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("operators", "0004_add_announcement_age"),
    ]

    operations = [
        migrations.AlterModelOptions(
            name="announcementroute",
            options={"verbose_name": "route"},
        ),
        migrations.AlterModelOptions(
            name="telegramlink",
            options={"verbose_name": "Telegram link"},
        ),
        migrations.AlterField(
            model_name="announcement",
            name="chat_id",
            field=models.BigIntegerField(null=True, verbose_name="chat"),
        ),
        migrations.AlterField(
            model_name="announcement",
            name="message_id",
            field=models.BigIntegerField(null=True, verbose_name="message ID"),
        ),
        migrations.AlterField(
            model_name="announcement",
            name="topic_id",
            field=models.BigIntegerField(null=True, verbose_name="topic"),
        ),
        migrations.AlterField(
            model_name="telegramlink",
            name="telegram_user_id",
            field=models.BigIntegerField(unique=True, verbose_name="Telegram user ID"),
        ),
    ]
