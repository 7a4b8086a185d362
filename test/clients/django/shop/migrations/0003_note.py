import django
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [('shop', '0002_invoice')]
    operations = []
    if django.VERSION >= (5, 0):
        operations.append(migrations.CreateModel('Note', [
            ('id', models.BigIntegerField(
                primary_key=True, serialize=False, db_default=models.Func(function='uidgen.uid_next'))),
            ('item', models.TextField()),
        ]))
