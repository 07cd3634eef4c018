"""Holds our `cgi` module against Python's own, where there still is one. Argument: our file."""
import importlib.util
import io
import os
import sys
import warnings

warnings.simplefilter("ignore")
try:
    import cgi as theirs
except ImportError:
    sys.exit("no cgi module to compare with")
spec = importlib.util.spec_from_file_location("ours", sys.argv[1])
ours = importlib.util.module_from_spec(spec)
spec.loader.exec_module(ours)

for line in [
    "text/html", "text/html; charset=utf-8", 'form-data; name="a; b"; filename="c\\"d"', "",
    'form-data; name="Fieldname"; filename="a\\\\b"', "x; a=1; b", "  spaced ;  a = 1 ",
]:
    assert ours.parse_header(line) == theirs.parse_header(line), (line, ours.parse_header(line))

def multipart(*parts):
    body = b"".join(b"--B\r\n" + part + b"\r\n" for part in parts)
    return "multipart/form-data; boundary=B", body + b"--B--\r\n"

field = b'Content-Disposition: form-data; name="%s"\r\n\r\n%s'
upload = b'Content-Disposition: form-data; name="%s"; filename="%s"\r\nContent-Type: text/x\r\n\r\n%s'
form = "application/x-www-form-urlencoded"
cases = [
    ("GET", None, b"", "a=1&b=x+y%26&a=2&c=&d"),
    ("GET", None, b"", ""),
    ("HEAD", None, b"", "a=%e4%f6&b=%C3%A4"),
    ("POST", form, b"a=1&b=2&a=3", ""),
    ("POST", form, b"a=1", "a=2&q=3"),
    ("POST", *multipart(field % (b"a", b"one"), field % (b"b", b"")), ""),
    ("POST", *multipart(field % (b"a", b"one"), field % (b"a", b"two\r\nlines\n")), "q=1"),
    ("POST", *multipart(upload % (b"f", b"n.txt", b"content \xff\x00\r\n--A\r\nmore")), ""),
    ("POST", *multipart(upload % (b"f", b"big", b"x" * 300000 + b"\r\n" + b"y" * 70000)), ""),
    ("POST", *multipart(upload % (b"f", b"", b"")), ""),
    ("POST", *multipart(field % (b"\xc3\xa4", b"\xc3\xb6 \xff")), ""),
]

def shown(module, method, kind, body, query, keep):
    environ = {"REQUEST_METHOD": method, "QUERY_STRING": query}
    if kind is not None:
        environ.update(CONTENT_TYPE=kind, CONTENT_LENGTH=str(len(body)))
    form = module.FieldStorage(io.BytesIO(body), environ=environ, keep_blank_values=keep)
    if form.list is None:
        return form.type, form.value, form.file.read()
    names = sorted(form.keys())
    seen = [(name, form.getvalue(name), form.getfirst(name), form.getlist(name), name in form) for name in names]
    parts = [(one.name, one.filename, one.value, one.type, one.disposition) for one in form.list]
    files = [one.file.read() for one in form.list if one.file is not None]
    return seen, parts, files, len(form), bool(form), form.getvalue("none", 5), form.getlist("none")

for case in cases:
    for keep in (0, 1):
        one, other = shown(ours, *case, keep), shown(theirs, *case, keep)
        assert one == other, (case[:2], keep, str(one)[:500], str(other)[:500])

for method, kind, body, query in [("POST", "multipart/form-data", b"", ""), ("POST", "multipart/form-data; boundary=", b"", "")]:
    for module in (ours, theirs):
        try:
            shown(module, method, kind, body, query, 0)
        except ValueError:
            continue
        raise AssertionError((module, kind))

environ = {"REQUEST_METHOD": "GET", "QUERY_STRING": "a=1&a=2"}
assert ours.parse(environ=environ) == theirs.parse(environ=environ)
kind, body = multipart(field % (b"a", b"one"))
both = [module.parse_multipart(io.BytesIO(body), {"boundary": b"B", "CONTENT-LENGTH": str(len(body))}) for module in (ours, theirs)]
assert both[0] == both[1], both
print("the same")
