"""The corpus: requests as bytes of HTTP/1.1, and as fields of HTTP/2 and HTTP/3."""

import re
from dataclasses import dataclass, field
from pathlib import Path

ESCAPE = re.compile(rb"\\(?:x([0-9a-f]{2})|(.))")
PLAIN = {b"r": b"\r", b"n": b"\n", b"t": b"\t", b"\\": b"\\"}
FILL = re.compile(rb"\{(.)\*(\d+)\}")

# Requests with one byte of every value in a place of each kind. What becomes of them is not said: whatever goes on is
# one request, as for all others.
EVERY_BYTE = [
    rb"{byte}GET /app/{id} HTTP/1.1\r\nHost: h\r\n\r\n",
    rb"G{byte}T /app/{id} HTTP/1.1\r\nHost: h\r\n\r\n",
    rb"GET{byte}/app/{id} HTTP/1.1\r\nHost: h\r\n\r\n",
    rb"GET /app/{id}{byte}x HTTP/1.1\r\nHost: h\r\n\r\n",
    rb"GET /app/{id}?x{byte}y HTTP/1.1\r\nHost: h\r\n\r\n",
    rb"GET /app/{id} HTTP/1.1{byte}\r\nHost: h\r\n\r\n",
    rb"GET /app/{id} HTTP/1.1\r{byte}Host: h\r\n\r\n",
    rb"GET /app/{id} HTTP/1.1\r\nHost{byte}: h\r\n\r\n",
    rb"GET /app/{id} HTTP/1.1\r\nHost:{byte}h\r\n\r\n",
    rb"GET /app/{id} HTTP/1.1\r\nHost: h{byte}\r\n\r\n",
    rb"{get}X{byte}: y\r\n\r\n",
    rb"{get}{byte}X: y\r\n\r\n",
    rb"{get}X: y{byte}z\r\n\r\n",
    rb"{get}X: y\r{byte}\r\n\r\n",
    rb"{post}Content-Length{byte}: 42\r\n\r\n{@*42}",
    rb"{post}Content-Length:{byte}42\r\n\r\n{hidden}",
    rb"{post}Content-Length: 42{byte}\r\n\r\n{hidden}",
    rb"{post}Transfer-Encoding{byte}: chunked\r\n\r\n0\r\n\r\n",
    rb"{post}Transfer-Encoding:{byte}chunked\r\n\r\n2a\r\n{hidden}\r\n0\r\n\r\n",
    rb"{post}Transfer-Encoding: chunked{byte}\r\n\r\n2a\r\n{hidden}\r\n0\r\n\r\n",
    rb"{post}Transfer-Encoding: chunked\r\n\r\n{byte}2a\r\n{hidden}\r\n0\r\n\r\n",
    rb"{post}Transfer-Encoding: chunked\r\n\r\n2a{byte}\r\n{hidden}\r\n0\r\n\r\n",
    rb"{post}Transfer-Encoding: chunked\r\n\r\n2a;x={byte}\r\n{hidden}\r\n0\r\n\r\n",
    rb"{post}Transfer-Encoding: chunked\r\n\r\n2a\r\n{hidden}{byte}\n0\r\n\r\n",
    rb"{post}Transfer-Encoding: chunked\r\n\r\n2a\r\n{hidden}\r\n0{byte}\r\n\r\n",
    rb"{post}Transfer-Encoding: chunked\r\n\r\n2a\r\n{hidden}\r\n0\r\nX: y{byte}\r\n\r\n",
]


@dataclass
class Case:
    """A request, and what is known of what becomes of it; `None` where nothing is."""

    name: str
    id: str
    passes: bool | None = None
    marker: bool | None = None
    # What it has where it passes.
    target: bytes = b""
    body: bytes | None = None
    # Over HTTP/1.1: its bytes, and whether the client ends its sending behind the marker.
    sent: bytes = b""
    ends: bool = False
    # Over HTTP/2 and 3: its fields, pieces of its body, and trailers.
    fields: list = field(default_factory=list)
    pieces: list = field(default_factory=list)
    trailers: list | None = None


def unescaped(text: bytes) -> bytes:
    return ESCAPE.sub(lambda found: bytes.fromhex(found[1].decode()) if found[1] else PLAIN[found[2]], text)


def filled(text: bytes, id: str) -> bytes:
    """The bytes that a text of the corpus stands for."""
    name = id.encode()
    for short, long in [
        (b"{get}", rb"GET /app/{id} HTTP/1.1\r\nHost: h\r\n"),
        (b"{post}", rb"POST /app/{id} HTTP/1.1\r\nHost: h\r\n"),
        (b"{hidden}", rb"GET /app/hidden-{id} HTTP/1.1\r\nHost: h\r\n\r\n"),
        (b"{id}", name),
    ]:
        text = text.replace(short, long)
    return unescaped(FILL.sub(lambda found: found[1] * int(found[2]), text))


def marker(id: str) -> bytes:
    return b"GET /app/marker-%s HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n" % id.encode()


def written() -> list[Case]:
    """The cases of corpus.txt."""
    cases = []
    for line in (Path(__file__).parent / "corpus.txt").read_bytes().splitlines():
        if not line or line.startswith(b"#"):
            continue
        name, becomes, body, sent = [part.strip(b" ") for part in line.split(b" |", 3)]
        id = f"{len(cases):04}"
        request, behind, *more = becomes.split()
        sent = filled(sent, id)
        ends = b"fin" in more
        target = filled(more[0], id) if more and not ends else sent.split(b" ")[1] if b" " in sent.strip() else b""
        cases.append(
            Case(name.decode(), id, request == b"pass", behind == b"pass", target, filled(body, id), sent, ends)
        )
    return cases


def every_byte(first: int) -> list[Case]:
    """A case for each byte in each place."""
    cases = []
    for place in EVERY_BYTE:
        for byte in range(256):
            id = f"{first + len(cases):04}"
            sent = filled(place, id).replace(b"{byte}", bytes([byte]))
            cases.append(Case(f"byte {byte:#04x} in {place.decode()}", id, sent=sent))
    return cases


def of_fields(first: int) -> list[Case]:
    """Cases of HTTP/2 and HTTP/3: what it takes to hide a line of HTTP/1.1 in a field, and what contradicts itself."""
    cases: list[Case] = []

    def case(name: str, passes: bool, *more, without=(), first=(), **rest) -> None:
        id = f"{first_id + len(cases):04}"
        usual = {":method": "GET", ":scheme": "https", ":authority": "h", ":path": f"/app/{id}"}
        usual |= {name: value.replace("{id}", id) for name, value in rest.pop("pseudo", {}).items()}
        fields = [*first, *[(name, value) for name, value in usual.items() if name not in without], *more]
        coded = [tuple(part if isinstance(part, bytes) else part.encode("latin-1") for part in one) for one in fields]
        target = rest.pop("target", usual[":path"]).replace("{id}", id).encode()
        body = rest.pop("body", b"".join(rest.get("pieces", [])))
        cases.append(Case(name, id, passes, None, target, body, fields=coded, **rest))

    first_id = first
    hidden = "GET /app/hidden-0000 HTTP/1.1\r\nHost: h\r\n\r\n"
    post = {":method": "POST"}
    case("a request", True)
    case("a body", True, pseudo=post, pieces=[b"hello"])
    case("a request as a body", True, pseudo=post, pieces=[hidden.encode()])
    case("a last chunk as a body", True, pseudo=post, pieces=[b"0\r\n\r\n" + hidden.encode()])
    case("a body of a GET", True, pieces=[hidden.encode()])
    case("a body of its length", True, ("content-length", "5"), pseudo=post, pieces=[b"hello"])
    case("a body in pieces of its length", True, ("content-length", "5"), pseudo=post, pieces=[b"he", b"llo"])
    case("a length without a body", False, ("content-length", "42"), pseudo=post)
    case("a body that is longer than its length", False, ("content-length", "5"), pseudo=post, pieces=[b"hello" + hidden.encode()])
    case("a body that grows longer", False, ("content-length", "5"), pseudo=post, pieces=[b"hello", hidden.encode()])
    case("a body that is shorter than its length", False, ("content-length", "47"), pseudo=post, pieces=[b"hello"])
    case("a body of a length of zero", False, ("content-length", "0"), pseudo=post, pieces=[hidden.encode()])
    for length in ["42", "5"]:
        case(f"two lengths, then {length}", False, ("content-length", "5"), ("content-length", length), pseudo=post, pieces=[b"hello"])
    for length in ["+5", "-5", "5, 5", "0x5", "", "5 ", "99999999999999999999", "5\r\nx: y", "٥".encode()]:
        case(f"a length of {length!r}", False, ("content-length", length), pseudo=post, pieces=[b"hello"])
    for name in ["transfer-encoding", "connection", "keep-alive", "proxy-connection", "upgrade"]:
        case(f"a field {name}", False, (name, "chunked"), pseudo=post, pieces=[b"0\r\n\r\n" + hidden.encode()])
        case(f"a field {name} in capitals", False, (name.upper(), "chunked"), pseudo=post, pieces=[b"0\r\n\r\n"])
    case("te: trailers", True, ("te", "trailers"))
    case("te of something else", False, ("te", "chunked"))
    case("http2-settings", True, ("http2-settings", "AAMAAABkAARAAAAAAAIAAAAA"))
    case("expect", True, ("expect", "100-continue"), pseudo=post, pieces=[b"hello"])
    case("trailers", True, pseudo=post, pieces=[b"hello"], trailers=[(b"x-sum", b"1")])
    case("trailers named like framing", True, pseudo=post, pieces=[b"hello"], trailers=[(b"content-length", b"42"), (b"host", b"x")])
    case("a trailer of the connection", False, pseudo=post, pieces=[b"hello"], trailers=[(b"transfer-encoding", b"chunked")])
    case("a trailer with CR and LF", False, pseudo=post, pieces=[b"hello"], trailers=[(b"x", b"y\r\n\r\n" + hidden.encode())])
    case("a pseudo-header field as a trailer", False, pseudo=post, pieces=[b"hello"], trailers=[(b":path", b"/other")])
    # Lines in what must not have them.
    for shown, inside in [("CR LF", "\r\n"), ("LF", "\n"), ("CR", "\r"), ("NUL", "\0"), ("CR LF CR LF", "\r\n\r\n")]:
        injected = f"x{inside}transfer-encoding: chunked{inside}{hidden}"
        case(f"{shown} in a value", False, ("x", injected))
        case(f"{shown} before a value", False, ("x", inside + "y"))
        case(f"{shown} behind a value", False, ("x", "y" + inside))
        case(f"{shown} in a name", False, ("x" + inside + "y", "z"))
        case(f"{shown} in a cookie", False, ("cookie", "a=b" + inside + "x: y"))
        case(f"{shown} in :method", False, pseudo={":method": f"GET /app/hidden-0000 HTTP/1.1{inside}Host: h{inside}X: y"})
        case(f"{shown} in :path", False, pseudo={":path": f"/app/{{id}} HTTP/1.1{inside}Host: h{inside}X: "})
        case(f"{shown} in :authority", False, pseudo={":authority": f"h{inside}X: y"})
        case(f"{shown} in :scheme", False, pseudo={":scheme": f"https{inside}X: y"})
        case(f"{shown} in host", False, ("host", f"h{inside}X: y"), without=[":authority"])
    case("a name with a colon", False, ("x: y", "z"))
    case("a name with a colon behind it", False, ("content-length:", "42"))
    case("a name with a space", False, ("x y", "z"))
    case("a name with a space behind it", False, ("transfer-encoding ", "chunked"))
    case("a name in capitals", False, ("X", "y"))
    case("a name of nothing", False, ("", "y"))
    case("a name above ASCII", False, ("x\xe9", "y"))
    case("a value above ASCII", True, ("x", "y\xe9\xff"))
    case("a value with DEL", False, ("x", "y\x7f"))
    case("a value with white space around it", False, ("x", " y "))
    case("an underscore for the dash of a length", True, ("content_length", "42"), pseudo=post)
    # Pseudo-header fields.
    for name in [":method", ":scheme", ":path"]:
        case(f"no {name}", False, without=[name])
        case(f"{name} twice", False, first=[(name, "GET")])
        case(f"{name} of nothing", False, pseudo={name: ""})
    case(":path behind a field", False, ("x", "y"), (":path", "/app/hidden-0000"), without=[":path"])
    case(":authority behind a field", False, ("x", "y"), (":authority", "other"), without=[":authority"])
    case("a pseudo-header field of an answer", False, first=[(":status", "200")])
    case("an unknown pseudo-header field", False, first=[(":x", "y")])
    case("no host", False, without=[":authority"])
    case("host alone", True, ("host", "h"), without=[":authority"])
    case(":authority and host", True, ("host", "h"))
    case(":authority and another host", False, ("host", "other"))
    case(":authority and two hosts", False, ("host", "h"), ("host", "h"))
    for authority in ["user@h", "h/other", "h other", "h\\other", "h:x", "h,other", "h#x", "h?x"]:
        case(f":authority {authority}", False, pseudo={":authority": authority})
    case(":scheme of something else", False, pseudo={":scheme": "file"})
    case(":scheme with a host", False, pseudo={":scheme": "http://other/?"})
    case(":method of two words", False, pseudo={":method": "GET /app/hidden-0000 HTTP/1.1"})
    case(":method with a space behind it", False, pseudo={":method": "GET "})
    case(":method of any name", True, pseudo={":method": "FROB"})
    for path in ["/app/{id} HTTP/1.1", "/app/{id}\t", "app/{id}", "*", "http://other/app/{id}", "/app/{id}#x", "/app/{id}\xff"]:
        case(f":path {path!r}", False, pseudo={":path": path})
    case(":path with a query", True, pseudo={":path": "/app/{id}?x=/../"})
    case(":path with two slashes", True, pseudo={":path": "//app/{id}"}, target="/app/{id}")
    case(":path with dot segments", True, pseudo={":path": "/x/../app/{id}"}, target="/app/{id}")
    case(":path with dot segments, encoded", True, pseudo={":path": "/x/%2e%2e/app/{id}"}, target="/app/{id}")
    case(":path with CR and LF, encoded", False, pseudo={":path": "/app/{id}%0d%0aX:%20y"})
    case(":path with a slash, encoded", True, pseudo={":path": "/app/{id}%2fx"})
    case("CONNECT", False, pseudo={":method": "CONNECT", ":authority": "h:80"}, without=[":scheme", ":path"])
    case("CONNECT with a path", False, pseudo={":method": "CONNECT"})
    case("CONNECT for h2c", False, first=[(":protocol", "h2c")], pseudo={":method": "CONNECT"})
    case("a WebSocket that is refused", True, first=[(":protocol", "websocket")], pseudo={":method": "CONNECT"}, pieces=[hidden.encode()], body=b"")
    case(":protocol without CONNECT", False, first=[(":protocol", "websocket")])
    case("TRACE", False, pseudo={":method": "TRACE"})
    case("cookies in pieces", True, ("cookie", "a=b"), ("x", "y"), ("cookie", "c=d"))
    return cases
