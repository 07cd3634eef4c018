"""What CGI scripts use of the `cgi` module that Python had until 3.12: forms and header values."""

import html as _html
import io
import os
import sys
import tempfile
from collections.abc import Mapping
from email.parser import HeaderParser
from urllib.parse import parse_qsl

__all__ = ["MiniFieldStorage", "FieldStorage", "parse", "parse_header", "parse_multipart",
           "print_environ", "print_form", "test"]

#: Largest body that is read, in bytes; 0 is any. Scripts set it.
maxlen = 0
#: Longest line that is read at once, and a field that is kept in memory, in bytes.
_LINE_BYTES_MAX = 1 << 16
_MEMORY_BYTES_MAX = 1000


def parse_header(line):
    """A header's value and its parameters: `form-data; name="a"`."""
    parts = list(_parts(line))
    options = {}
    for part in parts[1:]:
        name, equals, value = part.partition("=")
        if not equals:
            continue
        value = value.strip()
        if len(value) >= 2 and value[0] == value[-1] == '"':
            value = value[1:-1].replace("\\\\", "\\").replace('\\"', '"')
        options[name.strip().lower()] = value
    return parts[0] if parts else "", options


def _parts(line):
    """What stands between semicolons that are not quoted."""
    begin, is_quoted, at = 0, False, 0
    while at < len(line):
        if line[at] == "\\" and is_quoted:
            at += 1
        elif line[at] == '"':
            is_quoted = not is_quoted
        elif line[at] == ";" and not is_quoted:
            yield line[begin:at].strip()
            begin = at + 1
        at += 1
    yield line[begin:].strip()


def parse(fp=None, environ=os.environ, keep_blank_values=0, strict_parsing=0, separator="&"):
    """The fields of a form: a list of values for each name."""
    form = FieldStorage(fp, environ=environ, keep_blank_values=keep_blank_values,
                        strict_parsing=strict_parsing, separator=separator)
    return {name: form.getlist(name) for name in form.keys()}


def parse_multipart(fp, pdict, encoding="utf-8", errors="replace", separator="&"):
    """The fields of a `multipart/form-data` body; `pdict` are the parameters of its type."""
    boundary = pdict["boundary"]
    boundary = boundary.decode("ascii") if isinstance(boundary, bytes) else boundary
    headers = {"content-type": 'multipart/form-data; boundary="%s"' % boundary}
    if "CONTENT-LENGTH" in pdict:
        headers["content-length"] = str(int(pdict["CONTENT-LENGTH"]))
    form = FieldStorage(fp, headers, environ={"REQUEST_METHOD": "POST"}, encoding=encoding,
                        errors=errors, separator=separator)
    return {name: form.getlist(name) for name in form.keys()}


class MiniFieldStorage:
    """A field of a form in a query, or in a body like one."""

    filename = list = type = file = disposition = None

    def __init__(self, name, value):
        self.name, self.value = name, value
        self.type_options, self.disposition_options, self.headers = {}, {}, {}

    def __repr__(self):
        return "MiniFieldStorage(%r, %r)" % (self.name, self.value)


class FieldStorage:
    """A form, and each of its parts in a multipart body."""

    def __init__(self, fp=None, headers=None, outerboundary=b"", environ=os.environ,
                 keep_blank_values=0, strict_parsing=0, limit=None, encoding="utf-8",
                 errors="replace", max_num_fields=None, separator="&"):
        self.keep_blank_values, self.strict_parsing = keep_blank_values, strict_parsing
        self.max_num_fields, self.separator = max_num_fields, separator
        self.encoding, self.errors = encoding, errors
        self.limit, self.outerboundary = limit, outerboundary
        self.name = self.filename = self.list = self.file = None
        self.disposition, self.disposition_options = "", {}
        self.qs_on_post, self.done, self.bytes_read = None, 0, 0
        method = environ.get("REQUEST_METHOD", "GET").upper()
        if headers is None and method not in ("GET", "HEAD"):
            headers = {"content-type": environ.get("CONTENT_TYPE",
                                                   "application/x-www-form-urlencoded")}
            if environ.get("CONTENT_LENGTH"):
                headers["content-length"] = environ["CONTENT_LENGTH"]
            self.qs_on_post = environ.get("QUERY_STRING")
        if headers is None:
            query = environ.get("QUERY_STRING")
            if query is None:
                query = sys.argv[1] if sys.argv[1:] else ""
            fp = io.BytesIO(query.encode(encoding, "surrogateescape"))
            headers = {"content-type": "application/x-www-form-urlencoded"}
        elif not isinstance(headers, Mapping) and not hasattr(headers, "get"):
            raise TypeError("headers must be a mapping, or a message of the email package")
        self.headers = headers
        fp = sys.stdin.buffer if fp is None else getattr(fp, "buffer", fp)
        if not hasattr(fp, "read") or not hasattr(fp, "readline"):
            raise TypeError("fp must be something to read from")
        self.fp = fp
        self.type, self.type_options = parse_header(headers.get("content-type", "text/plain"))
        self.length = self.bytes_announced(headers)
        if maxlen and self.length > maxlen:
            raise ValueError("Maximum content length exceeded")
        if self.limit is None and self.length >= 0:
            self.limit = self.length
        if self.type == "application/x-www-form-urlencoded":
            self.read_urlencoded()
        elif self.type.startswith("multipart/"):
            self.read_multipart()
        else:
            self.file = self.make_file()
            self.file.write(self.read_whole())
            self.file.seek(0)

    @staticmethod
    def bytes_announced(headers):
        try:
            return int(headers.get("content-length", -1))
        except ValueError:
            return -1

    def read_whole(self):
        content = self.fp.read(self.length) if self.length >= 0 else self.fp.read()
        self.bytes_read = len(content)
        return content

    def pairs(self, text):
        return parse_qsl(text, self.keep_blank_values, self.strict_parsing,
                         encoding=self.encoding, errors=self.errors,
                         max_num_fields=self.max_num_fields, separator=self.separator)

    def read_urlencoded(self):
        text = self.read_whole().decode(self.encoding, self.errors)
        if self.qs_on_post:
            text += self.separator + self.qs_on_post
        self.list = [MiniFieldStorage(*pair) for pair in self.pairs(text)]

    def read_multipart(self):
        boundary = self.type_options.get("boundary", "").encode("ascii", "replace")
        if not boundary or len(boundary) > 200 or not boundary.isascii():
            raise ValueError("Invalid boundary in multipart form: %r" % boundary)
        self.list = [MiniFieldStorage(*pair) for pair in self.pairs(self.qs_on_post or "")]
        lines = _Lines(self.fp, self.length)
        if lines.copy_until(boundary, None):
            while True:
                head = []
                for line in iter(lines.next, b""):
                    head.append(line)
                    if not line.strip():
                        break
                if not head:
                    break
                text = b"".join(head).decode(self.encoding, self.errors)
                part = self.part(HeaderParser().parsestr(text))
                is_more = lines.copy_until(boundary, part)
                part.file.seek(0)
                self.add(part)
                if not is_more:
                    break
        self.bytes_read = lines.bytes_read

    def part(self, headers):
        """A part of this form, empty."""
        part = type(self).__new__(type(self))
        part.__dict__.update(self.__dict__)
        part.headers, part.list, part.qs_on_post = headers, None, None
        part.disposition, part.disposition_options = parse_header(
            headers.get("content-disposition", ""))
        part.name = part.disposition_options.get("name")
        part.filename = part.disposition_options.get("filename")
        part.type, part.type_options = parse_header(headers.get("content-type", "text/plain"))
        part.length = self.bytes_announced(headers)
        part.file = part.make_file() if part.filename is not None else io.BytesIO()
        return part

    def add(self, part):
        if part.type.startswith("multipart/"):
            # Several files of one name; the form has them one by one.
            part.fp, part.length = part.file, -1
            part.read_multipart()
        elif part.filename is None:
            text = part.file.getvalue().decode(self.encoding, self.errors)
            part.file = io.StringIO(text, newline="")
        self.list.append(part)
        if self.max_num_fields is not None and len(self.list) > self.max_num_fields:
            raise ValueError("Max number of fields exceeded")

    def make_file(self):
        """Where a field is kept: in memory while it is short. Scripts override it."""
        return tempfile.SpooledTemporaryFile(_MEMORY_BYTES_MAX)

    @property
    def value(self):
        if self.file is None:
            return self.list
        self.file.seek(0)
        value = self.file.read()
        self.file.seek(0)
        return value

    @value.setter
    def value(self, value):
        self.file = io.StringIO(value) if isinstance(value, str) else io.BytesIO(value)

    def __repr__(self):
        return "FieldStorage(%r, %r, %r)" % (self.name, self.filename, self.value)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.file is not None:
            self.file.close()

    def fields(self):
        if self.list is None:
            raise TypeError("not indexable")
        return self.list

    def __iter__(self):
        return iter(self.keys())

    def __getitem__(self, key):
        found = [field for field in self.fields() if field.name == key]
        if not found:
            raise KeyError(key)
        return found[0] if len(found) == 1 else found

    def getvalue(self, key, default=None):
        values = self.getlist(key)
        if not values:
            return default
        return values[0] if len(values) == 1 else values

    def getfirst(self, key, default=None):
        values = self.getlist(key)
        return values[0] if values else default

    def getlist(self, key):
        return [field.value for field in self.fields() if field.name == key]

    def keys(self):
        return list(dict.fromkeys(field.name for field in self.fields()))

    def __contains__(self, key):
        return any(field.name == key for field in self.fields())

    def __len__(self):
        return len(self.keys())

    def __bool__(self):
        return bool(self.fields())


class _Lines:
    """Lines of a body of so many bytes; -1 is up to its end."""

    def __init__(self, source, length):
        self.source, self.left, self.bytes_read = source, length, 0

    def next(self):
        most = _LINE_BYTES_MAX if self.left < 0 else min(_LINE_BYTES_MAX, self.left)
        line = self.source.readline(most) if most else b""
        self.bytes_read += len(line)
        if self.left > 0:
            self.left -= len(line)
        return line

    def copy_until(self, boundary, part):
        """Copies a part without the line end before the boundary; True when another follows."""
        between, last = b"--" + boundary, b"--" + boundary + b"--"
        held, is_line_begin = b"", True
        for line in iter(self.next, b""):
            if is_line_begin and line.startswith(between):
                mark = line.rstrip()
                if mark == last:
                    return False
                if mark == between:
                    return True
            is_line_begin = line.endswith(b"\n")
            text = held + line
            for end in (b"\r\n", b"\n", b"\r"):
                if text.endswith(end):
                    held = end
                    break
            else:
                held = b""
            if part is not None:
                part.file.write(text[: len(text) - len(held)])
        if part is not None:
            part.file.write(held)
            part.done = -1
        return False


def print_environ(environ=os.environ):
    print("<h3>Shell Environment:</h3>\n<dl>")
    for name in sorted(environ):
        print("<dt>", _html.escape(name), "<dd>", _html.escape(environ[name]))
    print("</dl>\n")


def print_form(form):
    print("<h3>Form Contents:</h3>\n<dl>")
    for name in sorted(form.keys()):
        print("<dt>" + _html.escape(name) + "<dd>" + _html.escape(repr(form[name])))
    print("</dl>\n")


def test(environ=os.environ):
    """An answer that shows what the script was told."""
    print("Content-type: text/html\n")
    print_form(FieldStorage(environ=environ))
    print_environ(environ)
