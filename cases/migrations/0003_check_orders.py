from django.db import migrations


class Migration(migrations.Migration):
    """Orders that were there before the foreign key: none of them names a case."""

    dependencies = [
        ("cases", "0002_sql"),
    ]
    operations = [
        migrations.RunSQL(
            [
                "SET LOCAL statement_timeout = 0",
                "ALTER TABLE orders_order VALIDATE CONSTRAINT orders_order_case_fk",
            ],
            reverse_sql=migrations.RunSQL.noop,
        ),
    ]
