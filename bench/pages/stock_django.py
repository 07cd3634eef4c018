"""The pages of stock.page; STOCK in the environment is the database."""
import os

import django
import django.conf

django.conf.settings.configure(
    SECRET_KEY="x",
    ALLOWED_HOSTS=["*"],
    ROOT_URLCONF=__name__,
    DATABASES={"default": {"ENGINE": "django.db.backends.sqlite3", "NAME": os.environ["STOCK"], "CONN_MAX_AGE": None}},
    TEMPLATES=[{"BACKEND": "django.template.backends.django.DjangoTemplates"}],
)
django.setup()

from django.core.wsgi import get_wsgi_application  # noqa: E402
from django.db import models  # noqa: E402
from django.db.models import Count, F, Sum  # noqa: E402
from django.http import HttpResponse  # noqa: E402
from django.template import engines  # noqa: E402
from django.urls import path  # noqa: E402


class Part(models.Model):
    title = models.TextField(null=True)
    cents = models.IntegerField(null=True)

    class Meta:
        app_label, db_table = "part", "part"


ONE = engines["django"].from_string(
    "<h1>Part</h1>{% for row in rows %}<p>{{ row.id }} {{ row.title }} {{ row.cents }}{% endfor %}"
)
TABLE = engines["django"].from_string(
    "<h1>Parts</h1><table>{% for row in rows %}<tr><td>{{ row.id }}<td>{{ row.title }}<td>{{ row.cents }}{% endfor %}"
    "</table>"
)
SHELVES = engines["django"].from_string(
    "<h1>Shelves</h1><table>{% for row in rows %}<tr><td>{{ row.shelf }}<td>{{ row.parts }}<td>{{ row.sum }}"
    "{% endfor %}</table>"
)


def answer(template, rows):
    return HttpResponse(template.render({"rows": rows}))


def one(request):
    return answer(ONE, Part.objects.filter(id=request.GET["id"]))


def list(request):
    return answer(TABLE, Part.objects.filter(id__gte=request.GET["id"]).order_by("id")[:20])


def search(request):
    return answer(TABLE, Part.objects.filter(title__contains=request.GET["q"]).order_by("id")[:20])


def edit(request):
    found = Part.objects.filter(id=request.POST["id"])
    found.update(cents=request.POST["cents"])
    return answer(ONE, found)


def report(request):
    first = int(request.GET["id"])
    shelves = Part.objects.filter(id__range=(first, first + 999)).annotate(shelf=F("id") / 100).values("shelf")
    return answer(SHELVES, shelves.annotate(parts=Count("id"), sum=Sum("cents")).order_by("shelf"))


urlpatterns = [path(page.__name__, page) for page in (one, list, search, edit, report)]
application = get_wsgi_application()
