from django.db import models


class UidField(models.BigAutoField):
    """A primary key that the database draws with uidgen."""

    def db_type_suffix(self, connection):
        return 'DEFAULT uidgen.uid_next()'

    def db_type(self, connection):
        return 'bigint'
