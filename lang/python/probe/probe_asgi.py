"""Answers the shared cases (lang/probe) as an ASGI application."""

TEXT = [(b"content-type", b"text/plain")]
BYTES = [(b"content-type", b"application/octet-stream")]
PATTERN = b"0123456789abcdef"
QUESTIONS = {"noop": "NOOP:", "unknown": "SING: la", "timeout": "TIMEOUT: 30", "map": "MAP-PATH: /"}
FIELDS = [
    (b"Set-Cookie", b"a=1; Path=/"),
    (b"Set-Cookie", b"b=2; HttpOnly"),
    (b"X-Empty", b""),
    (b"X-Long", b"l" * 4000),
    (b"X-Bytes", "äöü".encode()),
]


async def application(scope, receive, send):
    if scope["type"] == "http":
        path = scope["path"][len(scope["root_path"]) :]
        words = path.split("/")
        await PAGES[words[1]](Asked(scope, receive, send, path), words[2:])
        return
    assert scope["type"] == "lifespan"
    for _ in range(2):
        message = await receive()
        await send({"type": message["type"] + ".complete"})


class Asked:
    """A request with the few calls that the pages want."""

    def __init__(self, scope, receive, send, path):
        self.scope, self._receive, self._send, self.path = scope, receive, send, path

    async def pieces(self):
        while True:
            message = await self._receive()
            if message["type"] != "http.request":
                raise ConnectionError("the client left")
            yield message["body"]
            if not message["more_body"]:
                return

    async def start(self, status=200, fields=(), trailers=False):
        await self._send(
            {
                "type": "http.response.start",
                "status": status,
                "headers": list(fields),
                "trailers": trailers,
            }
        )

    async def write(self, body, more=True):
        await self._send({"type": "http.response.body", "body": body, "more_body": more})

    async def answer(self, body, status=200, fields=TEXT):
        await self.start(status, fields)
        await self.write(body, more=False)

    async def other(self, kind, **more):
        await self._send({"type": kind, **more})


def pattern(size):
    return (PATTERN * (size // 16 + 1))[:size]


async def hello(asked, words):
    await asked.answer(b"Hello world\n", fields=[*TEXT, (b"content-length", b"12")])


async def empty(asked, words):
    await asked.answer(b"")


async def show(asked, words):
    scope = asked.scope
    found = {
        b"REQUEST_METHOD": scope["method"].encode(),
        b"PATH_INFO": asked.path.encode(),
        b"QUERY_STRING": scope["query_string"],
    }
    for name, value in scope["headers"]:
        variable = name.upper().replace(b"-", b"_")
        if not variable.startswith(b"CONTENT_"):
            variable = b"HTTP_" + variable
        found[variable] = value
    lines = []
    for name in found[b"HTTP_X_SHOW"].split(b","):
        lines.append(name + b"=" + found[name] if name in found else name + b" is not set")
    await asked.answer(b"".join(line + b"\n" for line in lines))


async def echo(asked, words):
    fields = [(n, v) for n, v in asked.scope["headers"] if n == b"content-type"]
    if words == ["stream"]:
        await asked.start(200, fields)
        async for piece in asked.pieces():
            await asked.write(piece)
        await asked.write(b"", more=False)
        return
    await asked.answer(b"".join([piece async for piece in asked.pieces()]), fields=fields)


async def count(asked, words):
    size = 0
    async for piece in asked.pieces():
        size += len(piece)
    await asked.answer(b"%d\n" % size)


async def ignore(asked, words):
    await asked.answer(b"ignored\n")


async def status(asked, words):
    if words[0] in ("204", "304"):
        await asked.answer(b"", int(words[0]), [])
    else:
        await asked.answer(f"status {words[0]}\n".encode(), int(words[0]))


async def redirect(asked, words):
    await asked.answer(b"", 302, [*TEXT, (b"location", b"https://example.invalid/there")])


async def fields_(asked, words):
    await asked.answer(b"fields\n", fields=[*TEXT, *FIELDS])


async def type_(asked, words):
    await asked.answer(b"<svg/>", fields=[(b"content-type", b"image/svg+xml")])


async def size(asked, words):
    fields = [*BYTES, (b"content-length", words[0].encode())]
    await asked.answer(pattern(int(words[0])), fields=fields)


async def stream(asked, words):
    total, piece = map(int, words)
    whole = pattern(total)
    await asked.start(200, BYTES)
    for at in range(0, total, piece):
        await asked.write(whole[at : at + piece])
    await asked.write(b"", more=False)


async def slow(asked, words):
    await asked.start(200, TEXT)
    for n in range(1, int(words[0]) + 1):
        await asked.write(b"line %d\n" % n)
    await asked.write(b"", more=False)


async def trailers(asked, words):
    await asked.start(200, TEXT, trailers=True)
    await asked.write(b"body\n", more=False)
    await asked.other("http.response.trailers", headers=[(b"X-Sum", b"5")], more_trailers=False)


async def early(asked, words):
    await asked.other("http.response.early_hint", links=[b"</style.css>; rel=preload"])
    await asked.answer(b"early\n")


async def fail(asked, words):
    if words == ["before"]:
        raise RuntimeError("as asked, before the answer")
    await asked.start(200, TEXT)
    await asked.write(b"some")
    raise RuntimeError("as asked, inside the answer")


async def callout(asked, words):
    exchange = asked.scope["extensions"]["hob"]["exchange"]
    if words == ["log"]:
        exchange.tell("LOG: info probe")
        exchange.tell("TRACE: probe")
        await asked.answer(b"logged\n")
        return
    code, _ = await exchange.callout(QUESTIONS[words[0]])
    await asked.answer(b"%d\n" % code)


PAGES = {
    "hello": hello,
    "empty": empty,
    "environ": show,
    "echo": echo,
    "count": count,
    "ignore": ignore,
    "status": status,
    "redirect": redirect,
    "fields": fields_,
    "type": type_,
    "size": size,
    "stream": stream,
    "slow": slow,
    "trailers": trailers,
    "early": early,
    "fail": fail,
    "callout": callout,
}
