"""WSGI and ASGI: the query string says how many KiB of body; with `p` behind, in pieces, no length
said. What a POST sends is read."""

BLOCK = (b"x" * 1023 + b"\n") * 64


def blocks(size):
    whole, rest = divmod(size, len(BLOCK))
    if whole == 0:
        return [BLOCK[:rest]]
    return (BLOCK if left else BLOCK[:rest] for left in range(whole, -1, -1) if left or rest)


def application(environ, start_response):
    query = environ.get("QUERY_STRING") or "0"
    size = int(query.rstrip("p")) * 1024
    while environ["REQUEST_METHOD"] == "POST" and environ["wsgi.input"].read(65536):
        pass
    fields = [("Content-Type", "text/plain"), ("Content-Length", str(size))]
    start_response("200 OK", fields[:1] if query.endswith("p") else fields)
    return blocks(size)


async def asgi(scope, receive, send):
    if scope["type"] == "lifespan":
        stage = None
        while stage != "lifespan.shutdown":
            stage = (await receive())["type"]
            await send({"type": f"{stage}.complete"})
        return
    size = int(scope["query_string"] or 0) * 1024
    while scope["method"] == "POST" and (await receive()).get("more_body"):
        pass
    fields = [(b"content-type", b"text/plain"), (b"content-length", str(size).encode())]
    await send({"type": "http.response.start", "status": 200, "headers": fields})
    left = size
    for block in blocks(size):
        left -= len(block)
        await send({"type": "http.response.body", "body": block, "more_body": left > 0})
