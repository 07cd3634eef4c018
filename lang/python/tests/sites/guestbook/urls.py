"""The pages."""

from django import forms
from django.contrib import admin
from django.http import FileResponse, HttpResponse, HttpResponseRedirect, StreamingHttpResponse
from django.template import engines
from django.urls import path

from .models import Entry
from .settings import FOLDER

PAGE = """<!doctype html><title>Guest book</title>
<p>visit {{ visit }}
{% for entry in entries %}<p><b>{{ entry.name }}</b>: {{ entry.text }}
{% endfor %}<form method="post">{% csrf_token %}{{ form }}<button>Write</button></form>
"""


class EntryForm(forms.ModelForm):
    class Meta:
        model = Entry
        fields = ["name", "text"]


def book(request):
    form = EntryForm(request.POST or None)
    if request.method == "POST" and form.is_valid():
        form.save()
        return HttpResponseRedirect("/")
    visit = request.session["visit"] = request.session.get("visit", 0) + 1
    page = engines["django"].from_string(PAGE)
    entries = Entry.objects.order_by("id")
    words = {"form": form, "entries": entries, "visit": visit}
    return HttpResponse(page.render(words, request), status=400 if form.errors else 200)


def count(request):
    return StreamingHttpResponse((f"{n}\n" for n in range(1, 10001)), content_type="text/plain")


def file(request):
    return FileResponse(open(FOLDER / "large.bin", "rb"))


def broken(request):
    raise ZeroDivisionError("as asked")


urlpatterns = [
    path("", book),
    path("count", count),
    path("file", file),
    path("broken", broken),
    path("admin/", admin.site.urls),
]
