"""WSGI: the query string says how many KiB of body."""

BLOCK = (b"x" * 1023 + b"\n") * 64


def application(environ, start_response):
    size = int(environ.get("QUERY_STRING") or 0) * 1024
    start_response("200 OK", [("Content-Type", "text/plain"), ("Content-Length", str(size))])
    whole, rest = divmod(size, len(BLOCK))
    if whole == 0:
        return [BLOCK[:rest]]
    return (BLOCK if left else BLOCK[:rest] for left in range(whole, -1, -1) if left or rest)
