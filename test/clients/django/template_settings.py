# The same, but test databases have the extension from a template.
from settings import *

DATABASES['default'].update({
    'TEST': {'TEMPLATE': 'template_uidgen'},
})
