"""Answers the shared cases (lang/probe) as a WSGI application."""

import itertools

TEXT = [("Content-Type", "text/plain")]
BYTES = [("Content-Type", "application/octet-stream")]
PATTERN = b"0123456789abcdef"
FIELDS = [
    ("Set-Cookie", "a=1; Path=/"),
    ("Set-Cookie", "b=2; HttpOnly"),
    ("X-Empty", ""),
    ("X-Long", "l" * 4000),
    ("X-Bytes", "äöü".encode().decode("latin-1")),
]


def application(environ, start_response):
    words = environ["PATH_INFO"].split("/")
    return PAGES[words[1]](environ, start_response, words[2:])


def text(start_response, body, status="200 OK", fields=()):
    start_response(status, TEXT + list(fields))
    return [body.encode()]


def pattern(size):
    return (PATTERN * (size // 16 + 1))[:size]


def pieces(environ):
    return iter(lambda: environ["wsgi.input"].read(65536), b"")


def hello(environ, start_response, words):
    return text(start_response, "Hello world\n", fields=[("Content-Length", "12")])


def empty(environ, start_response, words):
    return text(start_response, "")


def show(environ, start_response, words):
    lines = []
    for name in environ["HTTP_X_SHOW"].split(","):
        value = environ.get(name)
        lines.append(f"{name} is not set\n" if value is None else f"{name}={value}\n")
    start_response("200 OK", TEXT)
    return ["".join(lines).encode("latin-1")]


def echo(environ, start_response, words):
    fields = [("Content-Type", environ.get("CONTENT_TYPE", "text/plain"))]
    if words == ["stream"]:
        start_response("200 OK", fields)
        return pieces(environ)
    body = b"".join(pieces(environ))
    start_response("200 OK", fields)
    return [body]


def count(environ, start_response, words):
    return text(start_response, f"{sum(map(len, pieces(environ)))}\n")


def ignore(environ, start_response, words):
    return text(start_response, "ignored\n")


def status(environ, start_response, words):
    if words[0] in ("204", "304"):
        start_response(f"{words[0]} Without", [])
        return []
    return text(start_response, f"status {words[0]}\n", f"{words[0]} Status")


def redirect(environ, start_response, words):
    return text(start_response, "", "302 Found", [("Location", "https://example.invalid/there")])


def fields(environ, start_response, words):
    return text(start_response, "fields\n", fields=FIELDS)


def type_(environ, start_response, words):
    start_response("200 OK", [("Content-Type", "image/svg+xml")])
    return [b"<svg/>"]


def size(environ, start_response, words):
    start_response("200 OK", [*BYTES, ("Content-Length", words[0])])
    return [pattern(int(words[0]))]


def stream(environ, start_response, words):
    total, piece = map(int, words)
    whole = pattern(total)
    start_response("200 OK", BYTES)
    return (whole[at : at + piece] for at in range(0, total, piece))


def slow(environ, start_response, words):
    start_response("200 OK", TEXT)
    return (b"line %d\n" % n for n in range(1, int(words[0]) + 1))


def early(environ, start_response, words):
    environ["hob.exchange"].info(103, b"Link: </style.css>; rel=preload\n")
    return text(start_response, "early\n")


def fail(environ, start_response, words):
    if words == ["before"]:
        raise RuntimeError("as asked, before the answer")
    start_response("200 OK", TEXT)
    return itertools.chain([b"some"], map(failure, [1]))


def failure(_):
    raise RuntimeError("as asked, inside the answer")


def callout(environ, start_response, words):
    exchange = environ["hob.exchange"]
    if words == ["log"]:
        exchange.tell("LOG: info probe")
        exchange.tell("TRACE: probe")
        return text(start_response, "logged\n")
    code, _ = exchange.callout(QUESTIONS[words[0]])
    return text(start_response, f"{code}\n")


QUESTIONS = {"noop": "NOOP:", "unknown": "SING: la", "timeout": "TIMEOUT: 30", "map": "MAP-PATH: /"}
PAGES = {
    "hello": hello,
    "empty": empty,
    "environ": show,
    "echo": echo,
    "count": count,
    "ignore": ignore,
    "status": status,
    "redirect": redirect,
    "fields": fields,
    "type": type_,
    "size": size,
    "stream": stream,
    "slow": slow,
    "early": early,
    "fail": fail,
    "callout": callout,
}
