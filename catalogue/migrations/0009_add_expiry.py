"""The last day on which codes may be sold. Codes that are there keep none."""

from django.db import migrations, models

HELP = "The last day on which these codes may be sold, in UTC. Empty if they do not expire."


class Migration(migrations.Migration):
    dependencies = [("catalogue", "0008_name_variations")]
    operations = [
        migrations.AddField(
            model_name="vouchercode",
            name="expires_on",
            field=models.DateField(editable=False, null=True),
        ),
        migrations.AddField(
            model_name="batch",
            name="expires_on",
            field=models.DateField(editable=False, help_text=HELP, null=True),
        ),
    ]
