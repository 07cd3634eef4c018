//! Words about programs that make answers.

use hob_config::foreign::{Foreign, keys, lacks, needless};
use hob_config::schema::{LISTEN, PROGRAM};

use super::super::keys::{ROOT, ROUTE, SITE};
use crate::handle::cgi::keys::CGI;
use crate::handle::resident::keys::RESIDENT;
use crate::handle::warm::keys::WARM;

pub(super) static WORDS: &[Foreign] = &[
    keys(
        &[
            "ScriptAlias",
            "ScriptAliasMatch",
            "script_alias",
            "cgi-bin",
            "cgi.assign",
            "AddHandler",
            "SetHandler",
            "ExecCGI",
        ],
        "Apache, lighttpd, uWSGI",
        &["site.route.cgi"],
        "a `[[site.route]]` with `path = \"/cgi-bin/*\"` and `cgi = \"FOLDER\"`; scripts by \
         their ending: `cgi = { dir = \"FOLDER\", interpreters = { \".pl\" = \"perl\" } }`",
    )
    .only_in(&[&ROOT, &SITE, &ROUTE]),
    keys(
        &[
            "applications",
            "application",
            "app",
            "apps",
            "app_server",
            "targets",
        ],
        "Unit, uWSGI",
        &["site.route.resident"],
        "a `[[site.route]]` with `path = \"/*\"` and `resident = { wsgi = \
         \"MODULE:APPLICATION\", dir = \"FOLDER\" }`",
    )
    .only_in(&[&ROOT, &SITE, &ROUTE]),
    keys(
        &[
            "wsgi-file",
            "wsgi_app",
            "wsgi",
            "asgi",
            "module",
            "callable",
            "WSGIScriptAlias",
            "WSGIDaemonProcess",
            "WSGIProcessGroup",
            "WSGIPythonPath",
            "python",
        ],
        "uWSGI, gunicorn, Unit, Apache",
        &["site.route.resident"],
        "`resident = { wsgi = \"MODULE:APPLICATION\", dir = \"FOLDER\" }` in a route, or `asgi`",
    )
    .only_in(&[&ROOT, &SITE, &ROUTE]),
    keys(
        &["wsgi-file", "wsgi_app", "module", "callable"],
        "uWSGI, gunicorn, Unit",
        &["site.route.resident.wsgi"],
        "`wsgi = \"MODULE:APPLICATION\"`, without the `.py`; `dir` is where the module is",
    )
    .only_in(&[&RESIDENT]),
    keys(
        &[
            "psgi",
            "perl",
            "PerlModule",
            "PerlRequire",
            "PerlResponseHandler",
            "PerlHandler",
        ],
        "uWSGI, Unit, Apache",
        &["site.route.resident"],
        "`resident = { psgi = \"app.psgi\" }`, or `resident = { scripts = \"FOLDER\" }` for CGI \
         scripts that stay, as Apache's Registry has them",
    )
    .only_in(&[&ROOT, &SITE, &ROUTE]),
    keys(
        &[
            "chdir",
            "chdir2",
            "working_directory",
            "pythonpath",
            "python-path",
            "path",
        ],
        "uWSGI, gunicorn, Unit",
        &["site.route.resident.dir"],
        "`dir = \"FOLDER\"`, where a worker starts and modules are looked for",
    )
    .only_in(&[&RESIDENT]),
    keys(
        &[
            "virtualenv",
            "venv",
            "pyhome",
            "home",
            "python-home",
            "plugin",
        ],
        "uWSGI, Unit",
        &["site.route.resident.interpreter"],
        "`interpreter = \"venv/bin/python\"` in `resident`",
    ),
    keys(
        &[
            "pm",
            "pm.max_children",
            "max_children",
            "StartServers",
            "MinSpareServers",
            "MaxSpareServers",
            "start_servers",
            "cheaper",
            "spare",
            "num_workers",
        ],
        "php-fpm, Apache, uWSGI, Unit",
        &["site.route.resident.workers"],
        "`resident = { ..., workers = { min = 1, max = 8 } }`",
    )
    .only_in(&[&ROOT, &SITE, &ROUTE, &RESIDENT, &PROGRAM]),
    keys(
        &["workers", "processes"],
        "gunicorn, uWSGI, Unit",
        &["site.route.resident.workers"],
        "`workers = { min = 1, max = 8 }` in `resident`",
    )
    .only_in(&[&SITE, &ROUTE, &PROGRAM]),
    keys(
        &["processes"],
        "Unit, uWSGI",
        &["site.route.resident.workers"],
        "`workers = { min = 1, max = 8 }`",
    )
    .only_in(&[&RESIDENT]),
    keys(
        &["workers", "processes"],
        "gunicorn, uWSGI",
        &["threads", "site.route.resident.workers"],
        "hob's own are `threads = 4`, those of a program `resident = { ..., workers = { max = 8 \
         } }`",
    )
    .only_in(&[&ROOT]),
    keys(
        &["threads"],
        "gunicorn, uWSGI, Unit",
        &["site.route.resident.workers.concurrency"],
        "`workers = { concurrency = 8 }` in `resident`: requests of a worker at a time",
    )
    .only_in(&[&RESIDENT, &PROGRAM]),
    keys(
        &[
            "enable-threads",
            "worker_class",
            "gevent",
            "thread_stack_size",
        ],
        "gunicorn, uWSGI, Unit",
        &["site.route.resident.workers.concurrency"],
        "`workers = { concurrency = 8 }` in `resident`: requests of a worker at a time",
    )
    .only_in(&[&SITE, &ROUTE, &RESIDENT, &PROGRAM]),
    keys(
        &[
            "harakiri",
            "request_terminate_timeout",
            "max_execution_time",
            "CGIDScriptTimeout",
            "http-timeout",
        ],
        "uWSGI, php-fpm, Apache",
        &[
            "site.route.cgi.total",
            "site.route.warm.total",
            "site.route.resident.timeout.total",
        ],
        "`total = \"5m\"` in `cgi` or `warm`, `timeout = { total = \"5m\" }` in `resident`",
    ),
    keys(
        &["timeout"],
        "gunicorn, Apache, uWSGI",
        &["site.route.cgi.first_byte", "site.route.cgi.total"],
        "in `cgi` or `warm` of a route, as `cgi = { dir = \"cgi-bin\", first_byte = \"30s\", \
         total = \"5m\" }`; `resident` has them in its `timeout`",
    )
    .only_in(&[&PROGRAM, &ROUTE, &SITE, &ROOT, &LISTEN]),
    keys(
        &["timeout"],
        "gunicorn, Apache, uWSGI",
        &[
            "site.route.cgi.first_byte",
            "site.route.cgi.total",
            "site.route.warm.first_byte",
            "site.route.warm.total",
        ],
        "`first_byte = \"30s\"` until the answer begins, `total = \"5m\"` for all of it",
    )
    .only_in(&[&CGI, &WARM]),
    keys(
        &[
            "max_requests",
            "pm.max_requests",
            "MaxConnectionsPerChild",
            "requests",
        ],
        "gunicorn, uWSGI, php-fpm, Apache, Unit",
        &["site.route.resident.workers.max_requests"],
        "`workers = { max_requests = 10000 }` in `resident`",
    )
    .only_in(&[&ROOT, &SITE, &ROUTE, &RESIDENT, &PROGRAM]),
    keys(
        &[
            "reload-on-rss",
            "reload-on-as",
            "evil-reload-on-rss",
            "memory_limit",
        ],
        "uWSGI, php-fpm",
        &[
            "site.route.resident.workers.max_memory",
            "program.cgroup.memory",
        ],
        "`workers = { max_memory = \"512MiB\" }` in `resident` renews a worker; `cgroup = { \
         memory = \"512MiB\" }` is a hard limit",
    ),
    keys(
        &[
            "max-worker-lifetime",
            "process_idle_timeout",
            "idle_timeout",
            "cheap",
        ],
        "uWSGI, php-fpm, Unit",
        &[
            "site.route.resident.workers.max_age",
            "site.route.resident.workers.idle_timeout",
        ],
        "`workers = { max_age = \"1d\", idle_timeout = \"5m\" }` in `resident`",
    )
    .only_in(&[&ROOT, &SITE, &ROUTE, &RESIDENT, &PROGRAM]),
    keys(
        &["preload_app", "lazy-apps", "lazy", "opcache.preload"],
        "gunicorn, uWSGI, php-fpm",
        &["site.route.warm.preload"],
        "`warm = { dir = \"FOLDER\", preload = [\"json\"] }` forks from an interpreter that has \
         loaded them; workers of `resident` load for themselves",
    ),
    keys(
        &[
            "reload",
            "py-autoreload",
            "touch-reload",
            "reload_extra_files",
        ],
        "gunicorn, uWSGI",
        &["site.route.resident.watch"],
        "`watch = [\"*.py\"]` in `resident`; `hob recycle /app` renews workers by hand",
    ),
    keys(
        &["uid", "suexec", "SuexecUserGroup"],
        "uWSGI, Apache",
        &["user", "program.user", "site.route.cgi.user"],
        "`user = \"alice\"`: of the server at the top level, of programs in `[program]` or in \
         their route's `cgi`, `warm` or `resident`",
    ),
    keys(
        &["gid"],
        "uWSGI",
        &["group", "program.group"],
        "`group = \"www-data\"`: of the server at the top level, of programs in `[program]`",
    ),
    keys(
        &["user"],
        "nginx, Unit, php-fpm",
        &["program.user", "site.route.cgi.user"],
        "`user = \"alice\"` in `cgi`, `warm` or `resident` of a route, in `[program]` for all \
         programs; at the top level it is the server's",
    )
    .only_in(&[&SITE, &ROUTE]),
    keys(
        &[
            "SetEnv",
            "PassEnv",
            "fastcgi_param",
            "scgi_param",
            "uwsgi_param",
            "environment",
            "raw_env",
        ],
        "Apache, nginx, uWSGI, Unit, gunicorn",
        &[
            "program.env",
            "site.route.cgi.env",
            "site.route.warm.env",
            "site.route.resident.env",
            "site.route.fastcgi.env",
            "site.route.scgi.env",
            "site.route.uwsgi.env",
        ],
        "`env = { NAME = \"value\" }` in `[program]` or in `cgi`, `warm`, `resident`, `fastcgi`, \
         `scgi` or `uwsgi` of a route",
    ),
    keys(
        &["isolation", "rootfs", "chroot", "open_basedir"],
        "Unit, uWSGI, php-fpm",
        &["program.sandbox"],
        "`sandbox = { read = [\"/srv/app\"], namespaces = [\"pid\"] }` in `[program]` or in \
         `cgi`, `warm` or `resident` of a route",
    ),
    keys(
        &["XSendFile", "x-sendfile", "XSendFilePath"],
        "Apache, lighttpd",
        &["site.sendfile", "site.route.sendfile"],
        "`sendfile = [\"/var/files\"]` in `[[site]]` or a route",
    ),
    keys(
        &["X-Accel-Redirect"],
        "nginx",
        &["site.route.internal"],
        "`internal = true` in the route that it names",
    ),
    keys(
        &[
            "fastcgi_intercept_errors",
            "proxy_intercept_errors",
            "error_override",
            "ProxyErrorOverride",
        ],
        "nginx, Apache",
        &["site.intercept_errors", "site.route.intercept_errors"],
        "`intercept_errors = true` in `[[site]]` or a route",
    ),
    keys(
        &["at", "to"],
        "whoever has it on another machine",
        &["site.route.remote"],
        "`remote = { to = \"tls://HOST:PORT\", program = \"NAME\", tls = { .. } }` in the route: it \
         asks a hob of another machine, which has the program in an `[[offer]]`",
    )
    .only_in(&[&CGI, &WARM, &RESIDENT]),
    keys(
        &["CGIPassAuth", "WSGIPassAuthorization", "pass_auth"],
        "Apache",
        &[
            "site.route.cgi.pass_authorization",
            "site.route.warm.pass_authorization",
            "site.route.resident.pass_authorization",
        ],
        "`pass_authorization = true` in `cgi`, `warm` or `resident` of a route",
    ),
    keys(
        &[
            "php",
            "php_fastcgi",
            "php_fpm",
            "fpm",
            "fastcgi_pass",
            "fastcgi.server",
        ],
        "Caddy, nginx, lighttpd, php-fpm, Unit",
        &["site.route.fastcgi"],
        "`fastcgi = { run = \"php-fpm\" }` in the route of the scripts, or `fastcgi = \
         \"unix:/run/php/php-fpm.sock\"` for one that runs already",
    ),
    keys(
        &["FcgidWrapper"],
        "Apache",
        &["site.route.fastcgi.run"],
        "`fastcgi = { run = \"php-cgi\" }` in the route of the scripts",
    ),
    keys(
        &["grpc_pass"],
        "nginx",
        &["site.route.proxy", "site.route.proxy.http"],
        "`proxy = { to = \"http://127.0.0.1:50051\", http = \"2\" }` in a route",
    ),
    keys(
        &[
            "proxy_pass",
            "ProxyPass",
            "ProxyPassMatch",
            "ProxyPassReverse",
            "reverse_proxy",
            "proxy.server",
            "load_balancing",
            "balancer",
            "backend",
        ],
        "nginx, Apache, Caddy, Unit, lighttpd",
        &["site.route.proxy"],
        "`proxy = \"http://127.0.0.1:3000\"` in a route; several members: `proxy = { to = \
         [\"http://a:3000\", \"http://b:3000\"] }`",
    ),
    keys(
        &[
            "least_conn",
            "ip_hash",
            "BalancerMember",
            "roundrobin",
            "leastconn",
        ],
        "nginx, Apache, HAProxy",
        &["upstream.balance", "upstream.member"],
        "`balance` of `proxy` and `[[upstream]]` says who of several gets a request; \
         `[[upstream.member]]` has `weight` and `backup`",
    ),
    keys(
        &["server-template", "dynamic srv", "resolve"],
        "HAProxy, Caddy, nginx",
        &["upstream.to", "upstream.service_members"],
        "`to = \"srv:_app._tcp.example.com\"` of `proxy` and `[[upstream]]` has the servers of a \
         service as members; other names are looked up again by themselves",
    ),
    keys(
        &["proxy_set_header", "header_up", "RequestHeader"],
        "nginx, Caddy, Apache",
        &["site.route.proxy.headers", "site.headers_remove"],
        "`headers` of `proxy` sets fields of requests, `host` and `forwarded` the usual ones; \
         `headers` and `headers_remove` of a route are about its answers",
    ),
    keys(
        &[
            "proxy_redirect",
            "proxy_cookie_path",
            "proxy_cookie_domain",
            "ProxyPassReverseCookiePath",
        ],
        "nginx, Apache",
        &["site.route.proxy.location", "site.route.proxy.cookies"],
        "`location` of `proxy` is on by itself; `cookies = true` does the same for cookies",
    ),
    keys(
        &["ProxyPreserveHost"],
        "Apache",
        &["site.route.proxy.host"],
        "`host = \"keep\"` in `proxy` of a route, which is the default",
    ),
    keys(
        &[
            "proxy_connect_timeout",
            "proxy_read_timeout",
            "ProxyTimeout",
        ],
        "nginx, Apache",
        &["site.route.proxy.timeout"],
        "`timeout = { connect = \"5s\", first_byte = \"60s\" }` in `proxy` of a route",
    ),
    keys(
        &[
            "proxy_ssl_verify",
            "proxy_ssl_trusted_certificate",
            "proxy_ssl_name",
            "proxy_ssl_server_name",
            "proxy_ssl_certificate",
            "proxy_ssl_certificate_key",
            "SSLProxyEngine",
            "SSLProxyVerify",
            "SSLProxyCACertificateFile",
            "SSLProxyMachineCertificateFile",
        ],
        "nginx, Apache",
        &["site.route.proxy.tls"],
        "`https://` in `to` of `proxy`, with `tls = { ca = \"FILE\", name = \"HOST\" }`",
    ),
    keys(
        &["proxy_next_upstream"],
        "nginx",
        &["site.route.proxy.retry"],
        "`retry = { times = 2, on = [\"connect\", \"closed\"] }` in `proxy` of a route",
    ),
    keys(
        &[
            "proxy_buffering",
            "proxy_buffers",
            "proxy_request_buffering",
            "proxy_max_temp_file_size",
        ],
        "nginx",
        &["site.route.proxy.buffer"],
        "`buffer = { request = \"10MiB\", response = \"1MiB\" }` in `proxy` of a route",
    ),
    needless(
        &["proxy_http_version", "header_down"],
        "nginx, Caddy",
        "`proxy` speaks HTTP/1.1, and follows the header rules of its route",
        "how-to/proxy.md",
    ),
    keys(
        &["fastcgi_index"],
        "nginx",
        &["site.route.fastcgi.index"],
        "`index = [\"index.php\"]` in `fastcgi` of a route",
    ),
    keys(
        &["fastcgi_split_path_info"],
        "nginx",
        &["site.route.fastcgi.split"],
        "`split = \".php\"`, the ending of scripts, in `fastcgi` of a route",
    ),
    keys(
        &["fastcgi_read_timeout", "fastcgi_connect_timeout"],
        "nginx",
        &["site.route.fastcgi.timeout"],
        "`timeout = { first_byte = \"60s\", progress = \"60s\" }` in `fastcgi` of a route",
    ),
    keys(
        &["scgi_pass", "scgi.server"],
        "nginx, lighttpd",
        &["site.route.scgi"],
        "`scgi = \"127.0.0.1:4000\"` in a route",
    ),
    keys(
        &["uwsgi_pass"],
        "nginx",
        &["site.route.uwsgi"],
        "`uwsgi = \"unix:/run/uwsgi/app.sock\"` in a route",
    ),
    keys(
        &["uwsgi_modifier1", "uwsgi_modifier2"],
        "nginx",
        &["site.route.uwsgi.modifier1", "site.route.uwsgi.modifier2"],
        "`modifier1 = 5` in `uwsgi` of a route",
    ),
    keys(
        &[
            "scgi_read_timeout",
            "scgi_connect_timeout",
            "uwsgi_read_timeout",
            "uwsgi_connect_timeout",
        ],
        "nginx",
        &["site.route.scgi.timeout", "site.route.uwsgi.timeout"],
        "`timeout = { first_byte = \"60s\", progress = \"60s\" }` in `scgi` or `uwsgi` of a route",
    ),
    lacks(
        &["php_value", "php_admin_value", "frankenphp"],
        "Caddy, Apache, php-fpm",
        "PHP of its own",
        "`fastcgi` asks php-fpm, whose own config has such values",
        "how-to/fastcgi.md",
    ),
    lacks(
        &[
            "node",
            "nodejs",
            "ruby",
            "rack",
            "rails",
            "java",
            "servlet",
            "go",
            "external",
            "executable",
        ],
        "Unit, uWSGI",
        "host for Node, Ruby, Go or Java",
        "what speaks CGI runs with `cgi = \"FOLDER\"`",
        "how-to/coming-from.md",
    ),
    lacks(
        &["cron", "crons", "spooler", "mule", "timer", "attach-daemon"],
        "uWSGI",
        "jobs and no timers",
        "systemd timers or cron start programs by the clock",
        "how-to/coming-from.md",
    ),
];
