"""Real servers to stand behind hob, and what each of them logged: a line for every request that it took."""

import os
import re
import shutil
import socket
import subprocess
import time
from pathlib import Path

READY_SECONDS_MAX = 30
# What logs have a backslash before.
ESCAPED = re.compile(rb'\\(["\\])')
NODE_FOLDER = Path(__file__).resolve().parents[2] / "target" / "node" / "bin"
APACHE_MODULES = Path("/usr/lib/apache2/modules")

NGINX = """
{user}
daemon off;
worker_processes 1;
pid {folder}/nginx.pid;
error_log stderr crit;
events {{ worker_connections 256; }}
http {{
    log_format judge escape=none '$request';
    access_log {log} judge;
    client_body_temp_path {folder}/body;
    proxy_temp_path {folder}/proxy;
    fastcgi_temp_path {folder}/fastcgi;
    uwsgi_temp_path {folder}/uwsgi;
    scgi_temp_path {folder}/scgi;
    server {{
        listen 127.0.0.1:{port};
        location / {{ return 200 "seen"; }}
    }}
}}
"""

APACHE = """
{user}
Listen 127.0.0.1:{port}
ServerName h
PidFile {folder}/apache.pid
DefaultRuntimeDir {folder}
ErrorLog /dev/null
LoadModule mpm_event_module {modules}/mod_mpm_event.so
LoadModule authz_core_module {modules}/mod_authz_core.so
DocumentRoot {folder}
AllowEncodedSlashes NoDecode
LogFormat "%r" judge
CustomLog {log} judge
"""

LIGHTTPD = """
server.modules = ( "mod_accesslog" )
server.bind = "127.0.0.1"
server.port = {port}
server.document-root = "{folder}"
server.upload-dirs = ( "{folder}" )
server.errorlog = "/dev/null"
accesslog.filename = "{log}"
accesslog.format = "%r"
"""

NODE = """
const fs = require("fs"), log = fs.openSync("{log}", "a");
const server = require("http").createServer((request, answer) => {{
    request.resume().on("end", () => {{
        fs.writeSync(log, `${{request.method}} ${{request.url}} HTTP/1.1\\n`);
        answer.end("seen");
    }});
}});
server.on("checkContinue", (_, answer) => answer.destroy());
server.listen({port}, "127.0.0.1");
"""

GUNICORN = """
def app(environ, start):
    while environ["wsgi.input"].read(65536):
        pass
    start("200 OK", [("Content-Length", "4")])
    return [b"" if environ["REQUEST_METHOD"] == "HEAD" else b"seen"]
"""


class Upstream:
    """One that runs; it logs to a file, of which all is there once it has stopped."""

    def __init__(self, name: str, folder: Path, python: Path):
        self.name, self.folder, self.log = name, folder, folder / "requests.log"
        with socket.create_server(("127.0.0.1", 0)) as free:
            self.port = free.getsockname()[1]
        self.program = subprocess.Popen(self.command(python), cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        until = time.monotonic() + READY_SECONDS_MAX
        while True:
            try:
                return socket.create_connection(("127.0.0.1", self.port)).close()
            except OSError as error:
                if self.program.poll() is not None or time.monotonic() > until:
                    raise ValueError(f"{name} does not start: {error}") from error
                time.sleep(0.02)

    def command(self, python: Path) -> list[str | Path]:
        def written(file: str, text: str, **more) -> Path:
            path = self.folder / file
            path.write_text(text.format(port=self.port, folder=self.folder, log=self.log, **more))
            return path

        is_root = os.geteuid() == 0
        if self.name == "nginx":
            return ["nginx", "-c", written("nginx.conf", NGINX, user="user nobody nogroup;" if is_root else "")]
        if self.name == "Apache":
            user = "User nobody\nGroup nogroup" if is_root else ""
            return ["apache2", "-X", "-f", written("apache.conf", APACHE, user=user, modules=APACHE_MODULES)]
        if self.name == "lighttpd":
            return ["lighttpd", "-D", "-f", written("lighttpd.conf", LIGHTTPD)]
        if self.name == "Node":
            return [node(), written("server.js", NODE)]
        (self.folder / "app.py").write_text(GUNICORN)
        options = ["--threads", "8", "--bind", f"127.0.0.1:{self.port}", "--access-logfile", str(self.log)]
        return [python / "gunicorn", *options, "--access-logformat", "%(r)s", "--keep-alive", "60", "app:app"]

    def stop(self) -> list[bytes]:
        """The lines that it logged, `METHOD TARGET VERSION` each."""
        self.program.terminate()
        self.program.wait(READY_SECONDS_MAX)
        logged = self.log.read_bytes() if self.log.exists() else b""
        if self.name not in ("nginx", "Node"):
            logged = ESCAPED.sub(rb"\1", logged)
        return logged.splitlines()


PROGRAMS = {"nginx": "nginx", "Apache": "apache2", "lighttpd": "lighttpd", "Node": "node", "gunicorn": ""}


def node() -> str | None:
    """Node.js, where it is, or where `make` put it."""
    return shutil.which("node") or shutil.which("node", path=NODE_FOLDER)


def absent(name: str) -> bool:
    program = PROGRAMS[name]
    return bool(program) and not (node() if name == "Node" else shutil.which(program))
