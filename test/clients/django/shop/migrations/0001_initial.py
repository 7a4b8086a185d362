import pathlib

from django.db import migrations, models

import shop.fields


class Migration(migrations.Migration):
    initial = True
    operations = [
        migrations.RunSQL(pathlib.Path('extension.sql').read_text(), migrations.RunSQL.noop),
        migrations.CreateModel('Order', [
            ('id', shop.fields.UidField(primary_key=True, serialize=False)),
            ('item', models.TextField()),
        ]),
        migrations.CreateModel('Line', [
            ('id', shop.fields.UidField(primary_key=True, serialize=False)),
            ('order', models.ForeignKey('shop.Order', models.CASCADE)),
            ('small', models.IntegerField(null=True)),
        ]),
        migrations.CreateModel('Invoice', [
            ('id', models.BigAutoField(primary_key=True, serialize=False)),
        ]),
        migrations.CreateModel('Product', [
            ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
            ('item', models.TextField()),
        ]),
    ]
