//! Words about the server itself: processes, limits, logs, state.

use hob_config::foreign::{Foreign, keys, needless};
use hob_config::schema::{LIMITS, LISTEN, LOG, PROGRAM};

use super::super::keys::{ROOT, ROUTE, SITE};

pub(super) static WORDS: &[Foreign] = &[
    keys(
        &[
            "set_real_ip_from",
            "RemoteIPTrustedProxy",
            "RemoteIPInternalProxy",
            "trusted_proxies",
            "forwarded_allow_ips",
            "extforward.forwarder",
        ],
        "nginx, Apache, Caddy, gunicorn, lighttpd",
        &["listen.trusted"],
        "`trusted = [\"10.0.0.0/8\"]` in `[[listen]]`",
    ),
    keys(
        &[
            "real_ip_header",
            "RemoteIPHeader",
            "client_ip_headers",
            "extforward.headers",
        ],
        "nginx, Apache, Caddy, lighttpd",
        &["listen.client_from"],
        "`client_from = \"X-Forwarded-For\"` beside `trusted` in `[[listen]]`",
    ),
    keys(
        &["accept-proxy", "RemoteIPProxyProtocol"],
        "HAProxy, Apache",
        &["listen.proxy_protocol"],
        "`proxy_protocol = true` in `[[listen]]`",
    ),
    keys(
        &["send-proxy", "send-proxy-v2", "send-proxy-v2-ssl"],
        "HAProxy",
        &["site.route.proxy.proxy_protocol"],
        "`proxy = { to = \"http://127.0.0.1:3000\", proxy_protocol = \"v2\" }` in `[[site.route]]`",
    ),
    keys(
        &["worker_processes", "ThreadsPerChild", "server.max-worker"],
        "nginx, Apache, lighttpd",
        &["threads"],
        "`threads = 4` at the top level; `\"auto\"` is one for each CPU",
    ),
    keys(
        &["worker_cpu_affinity", "cpu-affinity"],
        "nginx, uWSGI",
        &["cpus", "program.cpus"],
        "`cpus = [\"0-3\"]` at the top level, or in `[program]` for programs",
    ),
    keys(
        &[
            "worker_connections",
            "MaxRequestWorkers",
            "MaxClients",
            "ServerLimit",
            "server.max-connections",
        ],
        "nginx, Apache, lighttpd",
        &["limits.connections"],
        "`connections = 10000` in `[limits]`",
    ),
    keys(
        &["worker_priority"],
        "nginx",
        &["nice"],
        "`nice = -5` at the top level",
    ),
    keys(
        &["include", "import", "IncludeOptional"],
        "nginx, Caddy, Apache",
        &["include"],
        "`include = [\"conf.d/*.toml\"]` at the top level; it takes whole files. Keys that several \
         sites or routes share stand in a `[[snippet]]`, which they name in `snippets`",
    )
    .only_in(&[&SITE, &ROUTE, &LISTEN, &LIMITS, &PROGRAM]),
    keys(
        &["import", "IncludeOptional"],
        "Caddy, Apache",
        &["include"],
        "`include = [\"conf.d/*.toml\"]`; it takes whole files",
    )
    .only_in(&[&ROOT]),
    keys(
        &[
            "client_max_body_size",
            "LimitRequestBody",
            "request_body",
            "max_body_size",
            "max_request_body_size",
            "post_max_size",
            "limit-post",
            "server.max-request-size",
        ],
        "nginx, Apache, Caddy, Unit, php-fpm, uWSGI, lighttpd",
        &["site.route.body", "limits.body"],
        "`body = \"10MiB\"` in the route, or in `[limits]` for all",
    ),
    keys(
        &[
            "keepalive_timeout",
            "KeepAliveTimeout",
            "keepalive",
            "keep_alive",
            "keep_alive_timeout",
            "server.max-keep-alive-idle",
        ],
        "nginx, Apache, gunicorn, lighttpd",
        &["limits.idle"],
        "`idle = \"15s\"` in `[limits]`",
    )
    .only_in(&[&ROOT, &SITE, &ROUTE, &LISTEN, &LIMITS]),
    keys(
        &[
            "client_header_timeout",
            "header_read_timeout",
            "read_header",
            "RequestReadTimeout",
        ],
        "nginx, Unit, Caddy, Apache",
        &["limits.head_time"],
        "`head_time = \"10s\"` in `[limits]`",
    ),
    keys(
        &[
            "client_body_timeout",
            "body_read_timeout",
            "read_body",
            "server.max-read-idle",
        ],
        "nginx, Unit, Caddy, lighttpd",
        &["limits.body_progress"],
        "`body_progress = \"30s\"` in `[limits]`",
    ),
    keys(
        &["send_timeout", "server.max-write-idle", "socket-timeout"],
        "nginx, Unit, lighttpd, uWSGI",
        &["limits.write_progress"],
        "`write_progress = \"1m\"` in `[limits]`",
    ),
    keys(
        &["lingering_timeout", "lingering_time", "lingering_close"],
        "nginx",
        &["limits.linger"],
        "`linger = \"5s\"` in `[limits]`",
    ),
    keys(
        &[
            "large_client_header_buffers",
            "client_header_buffer_size",
            "LimitRequestFieldSize",
            "limit_request_field_size",
            "max_header_size",
            "max_header_bytes",
        ],
        "nginx, Apache, gunicorn, Caddy",
        &["limits.head"],
        "`head = \"64KiB\"` in `[limits]`",
    ),
    keys(
        &["buffer-size"],
        "uWSGI",
        &["limits.head"],
        "`head = \"64KiB\"` in `[limits]`",
    )
    .only_in(&[&ROOT, &LIMITS]),
    keys(
        &["geo", "geoip"],
        "nginx, Apache, Caddy",
        &["countries"],
        "`countries = \"GeoLite2-Country.mmdb\"` above the first table, and \
         `deny = [\"country:KP\"]` in `access`",
    ),
    keys(
        &["LimitRequestLine", "limit_request_line"],
        "Apache, gunicorn",
        &["limits.target"],
        "`target = \"16KiB\"` in `[limits]`",
    ),
    keys(
        &["LimitRequestFields", "limit_request_fields"],
        "Apache, gunicorn",
        &["limits.headers"],
        "`headers = 100` in `[limits]`",
    ),
    keys(
        &["limit_conn", "limit_conn_zone", "evasive.max-conns-per-ip"],
        "nginx, lighttpd",
        &["limits.connections_per_client", "site.concurrency"],
        "`connections_per_client = 64` in `[limits]` for connections; for requests \
         `concurrency = { requests = 8 }` in `[[site]]` or `[[site.route]]`",
    ),
    keys(
        &[
            "maxretry",
            "findtime",
            "DOSPageCount",
            "DOSSiteCount",
            "DOSPageInterval",
        ],
        "fail2ban, Apache",
        &["ban.count"],
        "`count = \"20/10m\"` in `[[ban]]`, how many in what time",
    ),
    keys(
        &["bantime", "DOSBlockingPeriod"],
        "fail2ban, Apache",
        &["ban.time"],
        "`time = \"1h\"` in `[[ban]]`",
    ),
    keys(
        &["ignoreip", "DOSWhitelist"],
        "fail2ban, Apache",
        &["ban.except"],
        "`except = [\"10.0.0.0/8\"]` in `[[ban]]`",
    ),
    keys(
        &["fail2ban", "jail", "crowdsec", "stick-table"],
        "fail2ban, HAProxy",
        &["ban"],
        "`[[ban]]` with what counts (`refused`, `status`), `count` and `time`",
    )
    .only_in(&[&ROOT, &SITE, &ROUTE]),
    keys(
        &[
            "graceful_timeout",
            "worker_shutdown_timeout",
            "grace_period",
            "GracefulShutdownTimeout",
            "worker-reload-mercy",
            "shutdown_timeout",
        ],
        "gunicorn, nginx, Caddy, Apache, uWSGI",
        &["drain"],
        "`drain = \"30s\"` at the top level",
    ),
    keys(
        &[
            "access_log",
            "accesslog",
            "CustomLog",
            "TransferLog",
            "accesslog.filename",
            "logger",
        ],
        "nginx, gunicorn, Apache, lighttpd, Unit",
        &["log", "listen.log", "site.log", "site.route.log"],
        "a `[[log]]` with `name = \"main\"` and `file = \"access.log\"`, then `log = \"main\"` \
         in `[[listen]]`, `[[site]]` or a route",
    ),
    keys(
        &[
            "log_format",
            "LogFormat",
            "accesslog.format",
            "access_log_format",
        ],
        "nginx, Apache, lighttpd, gunicorn, uWSGI",
        &["log.format"],
        "`format = \"{time} {client} {request_line} {status}\"` in `[[log]]`",
    ),
    keys(
        &["req-logger", "logto", "log-maxsize", "logfile-chown"],
        "uWSGI, Apache",
        &["log.file", "log.rotate_size"],
        "`file = \"access.log\"` and `rotate_size = \"100MiB\"` in `[[log]]`",
    ),
    needless(
        &[
            "error_log",
            "ErrorLog",
            "LogLevel",
            "log_level",
            "server.errorlog",
            "catch_workers_output",
            "slowlog",
        ],
        "nginx, Apache, gunicorn, Caddy, lighttpd, php-fpm",
        "hob's own messages, and what programs write to standard error, go to standard error; \
         the variable HOB_LOG says how much",
        "how-to/access-log.md",
    ),
    needless(
        &[
            "daemon",
            "daemonize",
            "background",
            "pid",
            "pidfile",
            "server.pid-file",
            "master",
            "master_process",
            "vacuum",
            "die-on-term",
            "emergency_restart_threshold",
        ],
        "nginx, uWSGI, gunicorn, Apache, lighttpd, php-fpm",
        "hob stays in the foreground under a service manager; `hob reload` and `hob stop` reach \
         it by its control socket",
        "how-to/reload-and-upgrade.md",
    ),
    needless(
        &[
            "LoadModule",
            "load_module",
            "server.modules",
            "modules",
            "plugins",
            "IfModule",
            "ServerRoot",
            "ServerAdmin",
        ],
        "Apache, nginx, lighttpd, uWSGI",
        "everything is in the one program, and what is not named is off or safe",
        "how-to/coming-from.md",
    )
    .only_in(&[&ROOT, &SITE, &ROUTE]),
    needless(
        &[
            "events",
            "sendfile",
            "use",
            "epoll",
            "multi_accept",
            "accept_mutex",
            "tcp_nopush",
            "tcp_nodelay",
            "aio",
            "directio",
            "worker_rlimit_nofile",
            "reuseport",
            "EnableSendfile",
            "EnableMMAP",
            "server.event-handler",
            "keepalive_requests",
            "MaxKeepAliveRequests",
            "server.max-fds",
            "types_hash_max_size",
            "server_names_hash_bucket_size",
        ],
        "nginx, Apache, lighttpd",
        "hob chooses that by itself",
        "how-to/limits.md",
    )
    .only_in(&[&ROOT]),
    needless(
        &[
            "tcp_nopush",
            "tcp_nodelay",
            "aio",
            "directio",
            "multi_accept",
            "EnableSendfile",
            "EnableMMAP",
            "keepalive_requests",
            "MaxKeepAliveRequests",
            "reuseport",
            "output_buffers",
            "sendfile_max_chunk",
        ],
        "nginx, Apache",
        "hob chooses that by itself",
        "how-to/limits.md",
    )
    .only_in(&[&SITE, &ROUTE, &LISTEN, &LIMITS]),
    keys(
        &[
            "open_file_cache",
            "open_file_cache_valid",
            "CacheEnable",
            "stat-cache-engine",
        ],
        "nginx, Apache, lighttpd",
        &["cache"],
        "on by itself; `[cache]` has `bytes`, `max_file` and `recheck`",
    ),
    keys(
        &[
            "stub_status",
            "server-status",
            "ExtendedStatus",
            "status.status-url",
            "pm.status_path",
            "vhost_traffic_status",
        ],
        "nginx, Apache, lighttpd, php-fpm, uWSGI, Unit",
        &["site.route.metrics", "admin"],
        "`hob status` and `hob top` show it; a route with `metrics = {}` has it for Prometheus, \
         `[admin]` opens pages",
    ),
    keys(
        &["HostnameLookups"],
        "Apache",
        &["names"],
        "`names = true` at the top level",
    ),
    keys(
        &["MDomain", "MDCertificateAgreement", "acme_certificate"],
        "Caddy, Apache, nginx",
        &["acme", "site.tls"],
        "`tls = \"auto\"` in `[[site]]` and `tls = true` in `[[listen]]` of port 443; `[acme]` \
         says more",
    ),
    keys(
        &["healthcheck", "ping.path"],
        "nginx, php-fpm",
        &["site.route.respond"],
        "a `[[site.route]]` with `path = \"/health\"` and `respond = { body = \"ok\" }`",
    ),
    keys(
        &["roll_size", "roll_keep"],
        "Caddy",
        &["log.rotate", "log.rotate_size", "log.keep"],
        "`rotate = \"daily\"`, `rotate_size = \"100MiB\"` and `keep = 7` in `[[log]]`",
    ),
    keys(
        &["path", "filename", "output"],
        "Caddy, lighttpd",
        &["log.file"],
        "`file = \"access.log\"`",
    )
    .only_in(&[&LOG]),
];
