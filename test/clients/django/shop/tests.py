# Django: save, bulk_create and the admin know the new ids; no migration is missing; the test database has the extension.
import importlib.util
import json
import os
import pathlib
import tempfile
import unittest

import django
from django.contrib.auth.models import User
from django.core.management import call_command
from django.db import DataError, connection, transaction
from django.db.models import BigAutoField
from django.test import TestCase, TransactionTestCase

from shop import models
from shop.fields import UidField
from shop.models import Invoice, Line, Order


class UidTest(TestCase):
    def test_save(self):
        order = Order.objects.create(item='tea')
        self.assertGreater(order.pk, 2**53)
        self.assertEqual(Order.objects.get(pk=order.pk).item, 'tea')

    def test_bulk_create(self):
        orders = Order.objects.bulk_create(Order(item=f'item {n}') for n in range(1000))
        ids = [order.pk for order in orders]
        self.assertEqual(ids, sorted(set(ids)))
        self.assertEqual(set(Order.objects.values_list('pk', flat=True)), set(ids))

    def test_foreign_key(self):
        line = Line.objects.create(order=Order.objects.create())
        with connection.cursor() as cursor:
            cursor.execute("SELECT atttypid::regtype::text FROM pg_attribute"
                           " WHERE attrelid = 'shop_line'::regclass AND attname = 'order_id'")
            self.assertEqual(cursor.fetchone(), ('bigint',))
        with self.assertRaisesMessage(DataError, 'integer out of range'), transaction.atomic():
            Line.objects.filter(pk=line.pk).update(small=line.pk)

    @unittest.skipUnless(importlib.util.find_spec('rest_framework'), 'there is no Django REST framework')
    def test_serializer(self):
        from shop.serializers import LineSerializer
        order = Order.objects.create()
        serializer = LineSerializer(data={'order': str(order.pk)})
        serializer.is_valid(raise_exception=True)
        line = serializer.save()
        self.assertEqual(line.order, order)
        self.assertEqual(serializer.data, {'id': str(line.pk), 'order': str(order.pk)})

    def test_float(self):
        order = Order.objects.create()
        with self.assertRaisesMessage(ValueError, "Field 'id' expected a number but got "):
            Order.objects.filter(pk=str(float(order.pk))).delete()
        self.assertEqual(Order.objects.count(), 1)

    def test_existing_table(self):
        self.assertGreater(Invoice.objects.create().pk, 2**53)

    def test_default_auto_field(self):
        self.assertGreater(models.Product.objects.create(item='tea').pk, 2**53)
        self.assertIsInstance(models.Product._meta.pk, UidField)

    def test_alter_field_alone(self):
        # What makemigrations writes has no ids drawn: Django 3.2 drops the sequence, later versions leave it.
        before = BigAutoField(primary_key=True, name='id')
        before.set_attributes_from_name('id')
        before.model = Invoice
        after = UidField(primary_key=True, name='id')
        after.set_attributes_from_name('id')
        after.model = Invoice
        with connection.schema_editor(collect_sql=True) as editor:
            editor.alter_field(Invoice, before, after)
        sql = '\n'.join(editor.collected_sql)
        self.assertNotIn('uid_next', sql)
        self.assertEqual('DROP SEQUENCE IF EXISTS "shop_invoice_id_seq" CASCADE' in sql, django.VERSION < (4, 1), sql)

    def test_admin(self):
        self.client.force_login(User.objects.create_superuser('root'))
        self.client.post('/admin/shop/order/add/', {'item': 'tea', '_continue': 'yes'})
        order = Order.objects.get()
        self.client.post(f'/admin/shop/order/{order.pk}/change/', {'item': 'milk'})
        self.assertEqual(list(Order.objects.values_list('pk', 'item')), [(order.pk, 'milk')])
        self.assertContains(self.client.get('/admin/shop/order/'), f'/admin/shop/order/{order.pk}/change/')
        self.client.post(f'/admin/shop/order/{order.pk}/delete/', {'post': 'yes'})
        self.assertFalse(Order.objects.exists())

    def test_role_that_may_not_create(self):
        # As where an administrator has created the extension, and another role runs the migrations.
        with connection.cursor() as cursor:
            cursor.execute(f'REVOKE CREATE ON DATABASE {connection.settings_dict["NAME"]} FROM CURRENT_USER')
            cursor.execute(pathlib.Path('extension.sql').read_text())
            cursor.execute("SELECT has_database_privilege(current_database(), 'CREATE'), has_schema_privilege('public', 'uidgen', 'USAGE')")
            self.assertEqual(cursor.fetchone(), (False, True))

    def test_no_migration_is_missing(self):
        call_command('makemigrations', check=True, dry_run=True, verbosity=0)

    def test_tables(self):
        self.assertEqual([name for name in connection.introspection.table_names() if name.startswith('uid_')], [])


class FlushTest(TransactionTestCase):
    reset_sequences = True

    def test_ids_go_on_after_flush(self):
        before = Order.objects.create().pk
        call_command('flush', interactive=False, verbosity=0)
        self.assertGreater(Order.objects.create().pk, before)


class MigrateTest(TransactionTestCase):
    def test_back_and_forward(self):
        call_command('migrate', 'shop', '0001', verbosity=0)
        first = Invoice.objects.create().pk
        given = Invoice.objects.create().pk
        self.assertEqual(given, first + 1)
        Invoice.objects.get(pk=given).delete()
        call_command('migrate', verbosity=0)
        invoice = Invoice.objects.create()
        self.assertGreater(invoice.pk, 2**53)
        with tempfile.NamedTemporaryFile('w', suffix='.json', delete=False) as fixture:
            json.dump([{'model': 'shop.invoice', 'pk': invoice.pk, 'fields': {}}], fixture)
        call_command('loaddata', fixture.name, verbosity=0)  # setval(..., max(id))
        os.unlink(fixture.name)
        call_command('migrate', 'shop', '0001', verbosity=0)
        self.assertEqual(Invoice.objects.create().pk, given + 1)
        call_command('migrate', verbosity=0)
        self.assertGreater(Invoice.objects.create().pk, invoice.pk)
