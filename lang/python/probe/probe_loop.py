"""Answers the shared cases (lang/probe) as a plain loop, and as plain CGI."""

import hob

TEXT = {"Content-Type": "text/plain"}
BYTES = {"Content-Type": "application/octet-stream"}
PATTERN = b"0123456789abcdef"
QUESTIONS = {"noop": "NOOP:", "unknown": "SING: la", "timeout": "TIMEOUT: 30", "map": "MAP-PATH: /"}


def answer(request):
    words = request.environ["PATH_INFO"].split("/")[1:]
    page, words = words[0], words[1:]
    if page == "hello":
        request.respond(200, {**TEXT, "Content-Length": "12"}, "Hello world\n")
    elif page == "empty":
        request.respond(200, TEXT)
    elif page == "environ":
        request.respond(200, TEXT, "".join(shown(request.environ)).encode("latin-1"))
    elif page == "echo":
        echo(request, words)
    elif page == "count":
        count = sum(len(piece) for piece in pieces(request))
        request.respond(200, TEXT, f"{count}\n")
    elif page == "ignore":
        request.respond(200, TEXT, "ignored\n")
    elif page == "status" and words[0] in ("204", "304"):
        request.respond(int(words[0]))
    elif page == "status":
        request.respond(int(words[0]), TEXT, f"status {words[0]}\n")
    elif page == "redirect":
        request.respond(302, {**TEXT, "Location": "https://example.invalid/there"})
    elif page == "fields":
        request.respond(200, FIELDS, "fields\n")
    elif page == "type":
        request.respond(200, {"Content-Type": "image/svg+xml"}, "<svg/>")
    else:
        special(request, page, words)


def special(request, page, words):
    if page == "size":
        request.respond(200, {**BYTES, "Content-Length": words[0]}, pattern(int(words[0])))
    elif page == "stream":
        total, piece = map(int, words)
        whole = pattern(total)
        request.start(200, BYTES)
        for at in range(0, total, piece):
            request.write(whole[at : at + piece])
        request.finish()
    elif page == "slow":
        request.start(200, TEXT)
        for n in range(1, int(words[0]) + 1):
            request.write(f"line {n}\n")
        request.finish()
    elif page == "trailers":
        request.start(200, TEXT)
        request.write("body\n")
        request.finish({"X-Sum": "5"})
    elif page == "early":
        request.inform(103, {"Link": "</style.css>; rel=preload"})
        request.respond(200, TEXT, "early\n")
    elif page == "fail":
        fail(request, words[0])
    elif words == ["log"]:
        request.log("probe")
        request.trace("probe")
        request.respond(200, TEXT, "logged\n")
    else:
        request.respond(200, TEXT, f"{request.callout(QUESTIONS[words[0]])[0]}\n")


def shown(environ):
    for name in environ["HTTP_X_SHOW"].split(","):
        value = environ.get(name)
        yield f"{name} is not set\n" if value is None else f"{name}={value}\n"


def echo(request, words):
    fields = {"Content-Type": request.headers.get("Content-Type", "text/plain")}
    if words == ["stream"]:
        request.start(200, fields)
        for piece in pieces(request):
            request.write(piece)
        request.finish()
    else:
        request.respond(200, fields, request.body.read())


def fail(request, when):
    if when == "after":
        request.start(200, TEXT)
        request.write("some")
    request.fail("as asked")


def pieces(request):
    return iter(lambda: request.body.read(65536), b"")


def pattern(size):
    return (PATTERN * (size // 16 + 1))[:size]


FIELDS = [
    ("Content-Type", "text/plain"),
    ("Set-Cookie", "a=1; Path=/"),
    ("Set-Cookie", "b=2; HttpOnly"),
    ("X-Empty", ""),
    ("X-Long", "l" * 4000),
    ("X-Bytes", "äöü".encode().decode("latin-1")),
]

for request in hob.requests():
    answer(request)
