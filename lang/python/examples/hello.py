"""Says hello, to whom the query names: /hello?name=World."""

from urllib.parse import parse_qs

import hob

for request in hob.requests():
    name = parse_qs(request.query).get("name", ["world"])[0]
    request.respond(200, {"Content-Type": "text/plain; charset=utf-8"}, f"Hello, {name}!\n")
