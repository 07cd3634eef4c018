"""The admin site, an upload, an answer that comes in pieces, and what Django knows of a request."""

import hashlib
import time

from django.conf import settings
from django.contrib import admin
from django.http import HttpResponse, HttpResponseRedirect, JsonResponse, StreamingHttpResponse
from django.middleware.csrf import get_token
from django.urls import path


def upload(request):
    """A form, and what came by it."""
    if request.method == "POST":
        digest, size = hashlib.sha256(), 0
        for chunk in request.FILES["kettle"].chunks():
            digest.update(chunk)
            size += len(chunk)
        return HttpResponse(f"{size} {digest.hexdigest()}")
    return HttpResponse(f'<input name="csrfmiddlewaretoken" value="{get_token(request)}">')


def pieces(request):
    """The second piece exists once somebody who has the first one says so."""

    def made():
        yield "first\n"
        while not (settings.FOLDER / request.GET["after"]).exists():
            time.sleep(0.01)
        yield "last\n"

    return StreamingHttpResponse(made(), content_type="text/plain")


def known(request):
    return JsonResponse(
        {
            "secure": request.is_secure(),
            "host": request.get_host(),
            "url": request.build_absolute_uri(),
            "for": request.headers.get("X-Forwarded-For"),
        }
    )


urlpatterns = [
    path("admin/", admin.site.urls),
    path("upload/", upload),
    path("pieces/", pieces),
    path("known/", known),
    path("away/", lambda request: HttpResponseRedirect(request.build_absolute_uri("/known/"))),
]
