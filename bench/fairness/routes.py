"""Many routes against few: CPU time of the whole server per request, requests spread over all routes.

wrk asks from CPU 1, the server has CPU 0; the rounds are interleaved so that both see the same machine.
"""
import pathlib
import re
import statistics
import subprocess

FEW, MANY = 10, 10_000
KINDS = {
    "exact path, fixed answer": ('path = "/section-{n}/page"', "/section-{n}/page",
                                 'respond = {{ status = 200, body = "ok" }}'),
    "prefix, fixed answer": ('path = "/section-{n}/*"', "/section-{n}/page",
                             'respond = {{ status = 200, body = "ok" }}'),
    "suffix, fixed answer": ('path = "*.kind{n}"', "/page.kind{n}",
                             'respond = {{ status = 200, body = "ok" }}'),
    "capture, fixed answer": ('path = "/section-{n}/{{name}}/page"', "/section-{n}/anything/page",
                              'respond = {{ status = 200, body = "ok" }}'),
    "prefix, one file": ('path = "/section-{n}/*"', "/section-{n}/page",
                         'rewrite = "/1k.txt"\nfiles = {{ root = "www" }}'),
}


def table_of(kind, count):
    """The routes as config text."""
    pattern, _, handler = KINDS[kind]
    route = "[[site.route]]\n" + pattern + "\n" + handler + "\n"
    return "".join(route.format(n=number) for number in range(count))


def script_of(kind, count, scratch):
    """A wrk script that asks for every route in turn, in an order that is not theirs."""
    _, path, _ = KINDS[kind]
    script = pathlib.Path(scratch) / f"routes-{count}.lua"
    script.write_text(f"""local asks, at = {{}}, 0
function init(args)
  for i = 0, {count - 1} do
    local path = string.gsub("{path}", "{{n}}", tostring((i * 7919) % {count}))
    asks[i] = wrk.format("GET", path)
  end
end
function request()
  at = (at + 1) % {count}
  return asks[at]
end
""")
    return script


def load(server, script, secs):
    """CPU microseconds of the server per request."""
    before = server.cpu_us()
    url = f"http://127.0.0.1:{server.port}/"
    text = subprocess.run(["taskset", "-c", "1", "wrk", "-t1", "-c10", f"-d{secs}s", "-s", script, url],
                          capture_output=True, text=True, check=True).stdout
    used = server.cpu_us() - before
    if "Non-2xx" in text or "Socket errors" in text:
        raise SystemExit(f"not every request was answered with 200:\n{text}")
    return used / int(re.search(r"(\d+) requests in", text).group(1))


def measure(start, kind, scratch, rounds, secs):
    """Median CPU time per request with few and with many routes, and their ratio."""
    figures = {FEW: [], MANY: []}
    scripts = {count: script_of(kind, count, scratch) for count in figures}
    with start(table_of(kind, FEW)) as few, start(table_of(kind, MANY)) as many:
        servers = {FEW: few, MANY: many}
        for number in range(rounds + 1):
            for count, server in servers.items():
                used = load(server, scripts[count], secs)
                if number:  # the first round warms up
                    figures[count].append(used)
    few, many = (statistics.median(figures[count]) for count in (FEW, MANY))
    return {"few": few, "many": many, "ratio": many / few,
            "spread": [(min(values), max(values)) for values in figures.values()]}
