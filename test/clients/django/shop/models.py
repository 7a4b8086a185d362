from django.db import models

from shop.fields import UidField


class Order(models.Model):
    id = UidField(primary_key=True)
    item = models.TextField()


class Line(models.Model):
    id = UidField(primary_key=True)
    order = models.ForeignKey(Order, models.CASCADE)
    small = models.IntegerField(null=True)


class Invoice(models.Model):
    """A table that was there before uidgen: migration 0002 moves it."""

    id = models.BigAutoField(primary_key=True)


class Product(models.Model):
    """A table that was there before DEFAULT_AUTO_FIELD: migration 0003 moves it."""

    item = models.TextField()
