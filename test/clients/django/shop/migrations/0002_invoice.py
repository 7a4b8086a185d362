from django.db import migrations


class Migration(migrations.Migration):
    dependencies = [('shop', '0001_initial')]
    operations = [
        migrations.RunSQL(
            "SELECT uidgen.uid_adopt('shop_invoice', 'id', dry_run => false)",
            "SELECT uidgen.uid_release('shop_invoice', 'id', dry_run => false)",
        ),
    ]
