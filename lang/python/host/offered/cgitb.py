"""What CGI scripts use of the `cgitb` module that Python had until 3.12: failures as a page."""

import html as _html
import os
import sys
import tempfile
import time
import traceback


def reset():
    """A head, which a script that fails has seldom printed."""
    return "Content-Type: text/html\n\n"


def text(einfo, context=5):
    """A failure in plain text."""
    return "".join(traceback.format_exception(*einfo))


def html(einfo, context=5):
    """A failure as a part of a page."""
    kind, value, _ = einfo
    name = getattr(kind, "__name__", str(kind))
    return "<h1>%s</h1>\n<p>%s\n<p>%s, Python %s\n<pre>%s</pre>\n" % (
        _html.escape(name),
        _html.escape(str(value)),
        time.ctime(),
        sys.version.split()[0],
        _html.escape(text(einfo, context)),
    )


class Hook:
    """Shows failures: to be `sys.excepthook`."""

    def __init__(self, display=1, logdir=None, context=5, file=None, format="html"):
        self.display, self.logdir, self.context = display, logdir, context
        self.file = file or sys.stdout
        self.format = format

    def __call__(self, kind, value, trace):
        self.handle((kind, value, trace))

    def handle(self, info=None):
        info = info or sys.exc_info()
        is_html = self.format.lower() == "html"
        if is_html:
            self.file.write(reset())
        shown = (html if is_html else text)(info, self.context)
        if self.display:
            self.file.write(shown + "\n")
        else:
            message = "A problem occurred in a Python script."
            self.file.write("<p>%s\n" % message if is_html else message + "\n")
        if self.logdir is not None:
            self.keep(shown, ".html" if is_html else ".txt")
        try:
            self.file.flush()
        except Exception:
            pass

    def keep(self, shown, ending):
        try:
            number, path = tempfile.mkstemp(suffix=ending, dir=self.logdir)
            with os.fdopen(number, "w") as log:
                log.write(shown)
            self.file.write("<p> %s contains the description of this error.\n" % path)
        except OSError as error:
            self.file.write("<p> The description could not be kept: %s\n" % error)


def handler(info=None):
    Hook().handle(info)


def enable(display=1, logdir=None, context=5, format="html"):
    """Shows failures that nobody catches."""
    sys.excepthook = Hook(display=display, logdir=logdir, context=context, format=format)
