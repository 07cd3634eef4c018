"""The same application, with every call of it and of the server looked at by wsgiref.validate."""

from wsgiref.validate import validator

from probe_wsgi import application as unlooked

application = validator(unlooked)
