from django.db import migrations

import shop.fields


class Migration(migrations.Migration):
    dependencies = [('shop', '0002_invoice')]
    operations = [
        migrations.SeparateDatabaseAndState(
            [migrations.RunSQL(
                "SELECT uidgen.uid_adopt('shop_product', 'id', dry_run => false)",
                "SELECT uidgen.uid_release('shop_product', 'id', dry_run => false)",
            )],
            [migrations.AlterField(
                'product', 'id',
                shop.fields.UidField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID'),
            )],
        ),
    ]
