// Invented answers of the API for the stand-in.

const COLUMNS =
  "requests errors bytes_in bytes_out p50_us p90_us p99_us max_us busy_workers queue_wait_us running connections server_cpu_us programs_cpu_us server_memory_bytes programs_memory_bytes".split(
    " ",
  );
export const HOSTILE = `<img src=x onerror="globalThis.ran=1">'"><script>globalThis.ran=1</script>`;
const UNSEEN = "a\u202Egpj.exe\u2066b\u200Bc\u001b[31mred\u0007\r\nx";

const now = () => Date.now();
const noise = (at) => {
  const x = Math.sin(at * 12.9898) * 43758.5453;
  return x - Math.floor(x);
};

/** One row of activity for a second. */
function row(at) {
  const wave = 1 + 0.5 * Math.sin(at / 30) + 0.3 * Math.sin(at / 4000) + noise(at) * 0.4;
  const requests = Math.round(140 * wave);
  return [
    requests,
    noise(at + 1) > 0.93 ? 2 : 0,
    requests * 700,
    requests * 21_000,
    850 + noise(at) * 200,
    9000 * wave,
    84_000 * wave,
    1_240_000 * noise(at + 3),
    Math.round(2.4 * wave),
    noise(at + 9) > 0.8 ? 9000 : 150,
    Math.round(5 * wave),
    38 + Math.round(4 * wave),
    110_000 * wave,
    340_000 * wave,
    21e6 + 1e5 * wave,
    93e6 + 8e5 * wave,
  ];
}

function activity(from, to, step) {
  const rows = [];
  for (let at = from; at < to; at += step) {
    const isMissing = at < Date.now() / 1000 - 20 * 86_400 || noise(Math.floor(at / 7200)) > 0.97;
    rows.push(
      isMissing && step > 1
        ? null
        : row(at).map((v, i) => ([0, 1, 2, 3, 12, 13].includes(i) ? v * step : v)),
    );
  }
  return { step_s: step, from_unix_s: from, columns: COLUMNS, rows };
}

const PATHS = [
  ["/cgi-bin/search.pl?q=tea+cups&page=2", "/cgi-bin/*", "cgi", 200],
  ["/app/orders/1832", "/app/*", "resident", 200],
  ["/images/teapot-large.jpg", "/*", "files", 200],
  ["/app/report?year=2026", "/app/*", "resident", 500],
  [`/search?q=${HOSTILE}`, "/*", "files", 404],
  [`/odd/${UNSEEN}`, "/*", "files", 404],
  ["/cgi-bin/slow.sh", "/cgi-bin/*", "cgi", 200],
  ["/old-page", "/old-page", "redirect", 301],
];

function request(n) {
  const [target, route, handler, status] = PATHS[n % PATHS.length];
  const isProgram = handler === "cgi" || handler === "resident";
  const slow = target.includes("slow") ? 12 : 1;
  const program = isProgram ? Math.round((30_000 + noise(n) * 90_000) * slow) : 0;
  const start = handler === "cgi" ? Math.round(3800 + noise(n + 5) * 900) : isProgram ? 90 : 0;
  const queue = handler === "resident" && noise(n) > 0.5 ? 14_000 : 0;
  const disk = handler === "files" ? 380 : 0;
  const take = noise(n + 2) > 0.8 ? 260_000 : 900;
  const body = noise(n + 8) > 0.9 ? 7000 : 0;
  const own = 130 + Math.round(noise(n) * 300);
  const total = program + queue + disk + take + body + own;
  return {
    id: `1.${4100 + Math.floor(n / 3)}.${n % 3}`,
    started_unix_ms: now() - n * 1830,
    client: n % 5 === 0 ? "2001:db8::17" : `192.0.2.${10 + (n % 7)}`,
    client_port: 40_000 + n,
    client_name: n % 4 === 0 ? "cups.example.net" : null,
    method: n % 6 === 1 ? "POST" : "GET",
    target,
    host: "shop.example.org",
    protocol: n % 2 ? "HTTP/2.0" : "HTTP/1.1",
    tls_version: "TLSv1.3",
    tls_handshake: "resumed",
    handshake_us: n % 3 === 0 ? 2400 : 0,
    status,
    site: "shop",
    route,
    handler,
    cache: handler === "files" ? (n % 2 ? "hit" : "miss") : "none",
    outcome: n % 11 === 0 ? "client-left" : "complete",
    fault: status === 500 ? "script" : status === 404 ? "client" : "none",
    reason: status === 500 ? "the program ended before it had sent a head" : null,
    detail:
      status === 500
        ? `Traceback (most recent call last):\n  File "report.py", line 3\n${HOSTILE} ${UNSEEN}`
        : null,
    note: null,
    user_agent:
      n % 5 === 4
        ? HOSTILE
        : "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0",
    referer: "https://shop.example.org/",
    user: n % 6 === 1 ? "ada" : null,
    bytes_in: 620,
    head_bytes_out: 310,
    body_bytes_out: Math.round(noise(n) * 120_000),
    queue_us: queue,
    start_us: start,
    program_us: program,
    cpu_us: Math.round(program * 0.4),
    disk_wait_us: disk,
    client_take_us: take,
    client_body_us: body,
    first_byte_us: body + queue + program + disk + own,
    total_us: total,
    server_us: own,
    rtt_us: total > 200_000 ? 48_000 : 0,
    retransmits: total > 200_000 ? 3 : 0,
    window_bytes: total > 200_000 ? 28_960 : 0,
    verdict:
      total > 200_000
        ? take > program
          ? "network: 0.26 of 0.32 s"
          : "program: 0.98 of 1.2 s"
        : null,
    trace_id: null,
  };
}

function overview() {
  const at = Math.floor(now() / 1000);
  const last = row(at);
  return {
    now_unix_ms: now(),
    version: "0.6.0",
    uptime_s: 412_345,
    generation: 4,
    hostname: "tea.example.org",
    rate: { requests_s: last[0], errors_s: 0.2, bytes_in_s: last[2], bytes_out_s: last[3] },
    latency: { p50_us: last[4], p90_us: last[5], p99_us: last[6], max_us: 1_240_000, count: 8211 },
    running: last[10],
    connections_open: last[11],
    workers: { busy: last[8], idle: 5, starting: 0, max: 8, queued: 0, queue_wait_p99_us: 9100 },
    cache: { entries: 1822, bytes: 48e6, bytes_max: 64 * 1048576, hit_ratio: 0.943 },
    memory: { server_bytes: last[14], programs_bytes: last[15] },
    cpu: { server_cores: 0.11, programs_cores: 0.34, machine_cores: 4 },
    alerts: [
      {
        level: "warning",
        text: "the certificate of shop.example.org expires in 12 days",
        since_unix_ms: now() - 3e6,
        page: "certificates",
      },
      {
        level: "notice",
        text: "2 requests of /app/report ended with status 500 in the last minute",
        since_unix_ms: now() - 60_000,
        page: "routes",
      },
    ],
    seconds: activity(at - 120, at, 1),
  };
}

const quantiles = (k) => ({
  p50_us: 900 * k,
  p90_us: 4200 * k,
  p99_us: 21_000 * k,
  max_us: 90_000 * k,
  mean_us: 1500 * k,
});

function routes() {
  const make = (route, handler, k, requests, errors, program) => ({
    site: "shop",
    route,
    handler,
    class: handler,
    program,
    requests,
    errors,
    bytes_out: requests * 9000,
    rate_s: requests / 9000,
    total: quantiles(k),
    first_byte: quantiles(k * 0.8),
    queue: quantiles(k / 40),
    start: quantiles(k / 9),
    cpu: quantiles(k / 3),
    last_unix_ms: now() - 4000,
  });
  return [
    make("/*", "files", 0.4, 1_203_882, 0, null),
    make("/app/*", "resident", 3, 91_202, 18, "app/orders.py"),
    make("/cgi-bin/*", "cgi", 17, 8213, 2, null),
    make("/old-page", "redirect", 0.1, 811, 0, null),
  ];
}

function running() {
  const states = ["program", "queued", "sending", "reading-body", "program", "tunnel"];
  return Array.from({ length: 6 }, (_, n) => ({
    ...request(n),
    state: states[n],
    age_us: Math.round(2_000_000 * noise(n + Math.floor(now() / 1000))),
    status: states[n] === "sending" ? 200 : null,
    total_us: null,
    worker_pid: n % 2 ? null : 41_200 + n,
  }));
}

const worker = (n) => ({
  pid: 41_200 + n,
  state: n === 0 ? "busy" : "idle",
  requests: 9120 - n * 211,
  age_s: 41_000 - n * 900,
  memory_bytes: 31e6 + n * 2e6,
  running: n === 0 ? [{ id: "7", request: "GET /app/orders/1832", ms: 1200 }] : [],
  cpu_us: 91e6,
});

const ADVICE =
  "Moving search.pl from cgi to warm would save about 2.73 ms of 4.20 ms of CPU time a request (64 %); " +
  "at today's 22 requests a second that is 0.06 of a CPU. Measured: 4.20 ms, the mean of 402107 runs " +
  "today, and 3.10 ms for a bare start of perl. Estimated: 372 us for a fork in its place.";

const upstreams = () => {
  const member = (address, more) => ({
    address,
    state: "in",
    out_for_s: null,
    why: null,
    weight: 1,
    is_backup: false,
    requests_max: null,
    requests: 2,
    resting: 7,
    latency_ms: 3.4,
    answers: 48213,
    failures: 0,
    run: null,
    ...more,
  });
  const out = {
    state: "out",
    out_for_s: 3,
    why: "requests to it failed",
    requests: 0,
    resting: 0,
    latency_ms: null,
    failures: 5,
  };
  const members = [member("10.0.0.7:3000"), member("10.0.0.8:3000", out)];
  const run = {
    name: "*.php php-fpm8.2",
    program: "php-fpm8.2",
    state: "ready",
    children: 5,
    pids: [41_733],
    starts: 2,
    deaths: 1,
    last_failure: "php-fpm8.2 was ended by signal 9 (SIGKILL)",
  };
  const service = {
    name: "srv:_api._tcp.internal",
    servers: 2,
    surplus: 1,
    again_in_s: 8,
    why: "no name server answered for _api._tcp.internal",
  };
  return [
    { name: "/api/* proxy", members, services: [service] },
    {
      name: "shop *.php fastcgi",
      members: [member("run:php-fpm8.2", { run })],
      services: [],
    },
  ];
};

const programs = () => [
  {
    name: "app/orders.py",
    site: "shop",
    route: "/app/*",
    handler: "resident",
    carrier: "stream",
    workers: [0, 1, 2].map(worker),
    min: 1,
    max: 4,
    queued: 0,
    busy: 1,
    restarts: 2,
    last_error: "worker 41190 ended with signal 11 while answering /app/report",
    advice: null,
  },
  {
    name: "/cgi-bin/* cgi",
    site: "shop",
    route: "/cgi-bin/*",
    handler: "cgi",
    runs: "/srv/shop/cgi-bin",
    carrier: null,
    workers: [],
    min: null,
    max: 8,
    queued: 0,
    busy: 1,
    restarts: null,
    last_error: null,
    cpu: {
      minute: { seconds: 62, requests: 1400, used_us: 5_880_000, request_us: 4200 },
      hour: { seconds: 3600, requests: 81_000, used_us: 340e6, request_us: 4198 },
    },
    requests_today: 402_118,
    rate_today_s: 22.3,
    scripts: [
      {
        file: "/srv/shop/cgi-bin/search.pl",
        interpreter: "perl",
        requests: 402_107,
        rate_s: 22.3,
        cpu_us: 4200,
        used_us: 1.69e9,
        start_cpu_us: 3100,
        last_unix_ms: now() - 40,
        saves: { to: "warm", cpu_us: 2728, cores: 0.061 },
        advice: ADVICE,
        why_not: null,
      },
      {
        file: "/srv/shop/cgi-bin/report<b>.sh",
        interpreter: null,
        requests: 11,
        rate_s: 0,
        cpu_us: 1900,
        used_us: 20_900,
        start_cpu_us: null,
        last_unix_ms: now() - 4e6,
        saves: null,
        advice: null,
        why_not: "fewer than 20 requests today",
      },
    ],
    scripts_more: 0,
    requests_others: 0,
    advice: ADVICE,
  },
];

const CONFIG = `# The shop.
listen = ["0.0.0.0:443"]

[[site]]
name = "shop"
hosts = ["shop.example.org"]
root = "/srv/shop"

[[site.route]]
path = "/cgi-bin/*"
cgi = { dir = "cgi-bin" }

[[site.route]]
path = "/app/*"
resident = { program = "app/orders.py", workers = [1, 4] }
`;
export const faults = [
  {
    file: "hob.toml",
    line: 14,
    column: 1,
    text: "no key is called residnt; did you mean resident?",
  },
];
export const diff =
  '--- hob.toml\n+++ hob.toml\n@@ -12,3 +12,3 @@\n [[site.route]]\n path = "/app/*"\n-resident = { program = "app/orders.py", workers = [1, 4] }\n+resident = { program = "app/orders.py", workers = [2, 8] }\n';
export const stack = `process 41200\n#0 wait4 ()\n#1 run (report.py:3)\n${HOSTILE}`;

let count = 0;
/** One event of watching. */
export function event() {
  const stages = ["connection", "request", "route", "queue", "worker", "stderr", "answer", "done"];
  const n = count++;
  const of = request(Math.floor(n / 8));
  const stage = stages[n % 8];
  const fields = {
    connection: { text: `from ${of.client}:50123 to 192.0.2.1:443`, listener: 1 },
    request: { text: `${of.method} ${of.target} HTTP/2.0`, method: of.method, target: of.target },
    route: { text: "the host is a name of the site; route 2 of 5 fits first" },
    queue: { text: "no wait: a worker was idle" },
    worker: { text: "process 41200 takes it" },
    stderr: { text: `warning: ${HOSTILE} ${UNSEEN}` },
    answer: { status: of.status },
    done: { outcome: "complete", total_us: of.total_us, status: of.status },
  }[stage];
  return { t_us: (n % 8) * 812, id: of.id, stage, ...fields };
}

/** One line of a log. */
export function logLine() {
  const of = request(count++);
  return `${of.client} - - [22/Nov/2026:23:51:12 +0000] "${of.method} ${of.target} HTTP/1.1" ${of.status} ${of.body_bytes_out} "-" "${of.user_agent}"`;
}

/** The body of `GET /v1/live` for a page. */
export function live(page, query) {
  if (page === "activity") {
    const step = Number(query.get("step") ?? 1);
    const to = Math.floor(Date.now() / 1000);
    return activity(to - 4 * step, to, step);
  }
  return answer(page, query);
}

/** The answer to a GET below /v1; null for what is not there. */
export function answer(path, query) {
  const number = (key, otherwise) => Number(query.get(key) ?? otherwise);
  if (path.startsWith("history/")) return { ...request(6), id: decodeURIComponent(path.slice(8)) };
  if (/^logs\/./.test(path)) return { lines: Array.from({ length: 60 }, logLine) };
  switch (path) {
    case "overview":
      return overview();
    case "activity":
      return activity(number("from"), number("to"), Math.max(1, number("step", 60)));
    case "running":
      return { requests: running() };
    case "connections":
      return {
        connections: Array.from({ length: 9 }, (_, n) => ({
          number: n,
          client: `192.0.2.${n}`,
          client_port: 40_100 + n,
          protocol: "HTTP/2.0",
          tls_version: "TLSv1.3",
          tls_suite: "TLS_AES_256_GCM_SHA384",
          listener: "0.0.0.0:443",
          opened_unix_ms: now() - n * 91_000,
          requests: n * 3,
          bytes_in: n * 2000,
          bytes_out: n * 91_000,
          state: n % 3 ? "idle" : "busy",
          rtt_us: 18_000 + n * 900,
          retransmits: n % 4,
          window_bytes: 28_960,
        })),
        more: false,
      };
    case "history": {
      const all = Array.from({ length: Math.min(100, number("limit", 100)) }, (_, n) => request(n));
      if (query.get("q") === "nothing") all.length = 0;
      if (query.get("sort") === "slowest") all.sort((a, b) => b.total_us - a.total_us);
      return {
        requests: all,
        kept: 28_113,
        kept_bytes: 7.9e6,
        oldest_unix_ms: now() - 5e6,
        scanned: 28_113,
        more: true,
        next: "@1800000000000-7-3",
      };
    }
    case "routes":
      return { routes: routes() };
    case "programs":
      return {
        programs: programs(),
        hosts: [],
        upstreams: upstreams(),
        today_since_unix_ms: now() - 18e6,
      };
    case "cache":
      return {
        entries: [
          ...PATHS.map(([p], n) => ({
            path: `/srv/shop${p}`,
            bytes: 91_000 * (n + 1),
            hits: 100 * n,
            age_s: 300 * n,
            state: "fresh",
          })),
        ],
        totals: {
          entries: 1822,
          bytes: 48e6,
          bytes_max: 64 * 1048576,
          hits: 1_200_000,
          misses: 60_000,
          hit_ratio: 0.952,
        },
      };
    case "bans":
      return {
        bans: [
          {
            client: "192.0.2.7",
            rule: "guessers",
            why: "401 /login?next=/",
            since_unix_ms: now() - 600_000,
            until_unix_ms: now() + 3_000_000,
            close: false,
            refused: 1204,
          },
          {
            client: "2001:db8:0:7::/64",
            rule: null,
            why: null,
            since_unix_ms: now() - 60_000,
            until_unix_ms: now() + 86_400_000,
            close: true,
            refused: 0,
          },
        ],
        total: 2,
      };
    case "certificates":
      return {
        certificates: [
          {
            names: ["shop.example.org", "www.shop.example.org"],
            listener: "0.0.0.0:443",
            issuer: "CN=R3,O=Example Authority,C=XX",
            not_before_unix_s: now() / 1000 - 6e6,
            not_after_unix_s: now() / 1000 + 1_036_800,
            days_left: 12,
            key: "ECDSA P-256",
            source: "acme",
            state: "in use",
          },
          {
            names: ["tea.example.org"],
            listener: "0.0.0.0:443",
            issuer: "CN=R3,O=Example Authority,C=XX",
            not_before_unix_s: now() / 1000 - 1e6,
            not_after_unix_s: now() / 1000 + 7e6,
            days_left: 81,
            key: "RSA 2048",
            source: "tls/tea.pem",
            state: "in use",
          },
        ],
        orders: [],
      };
    case "logs":
      return {
        logs: [
          { id: "0", name: "access", path: "/var/log/hob/access.log", bytes: 81e6 },
          { id: "1", name: "server", path: "/var/log/hob/hob.log", bytes: 9200 },
        ],
      };
    case "config":
      return {
        files: [
          {
            path: "/etc/hob/hob.toml",
            text: CONFIG,
            hash: "1",
            in_force: true,
            on_disk: true,
            command: null,
          },
        ],
        generation: 4,
        editable: true,
        why_not: null,
        can_roll_back: false,
      };
    case "explain":
      return {
        lines: [
          `${query.get("method")} ${query.get("url")}`,
          "site shop, because the host is shop.example.org",
          "route /cgi-bin/*, because it is the longest path that matches",
          "handler cgi: runs /srv/shop/cgi-bin/search.pl",
        ],
        site: "shop",
        route: "/cgi-bin/*",
        handler: "cgi",
        answer: { status: 200, fields: [], body_bytes: null, reason: null },
        rules: [
          {
            rule: "require",
            place: "hob.toml:31",
            lets_in: true,
            provided: "the password is right",
            why: '"ann", in staff, may, with the right password',
          },
        ],
        verdict: {
          outcome: "answered",
          text: "answered by cgi",
          rule: "require",
          place: "hob.toml:31",
          provided: ["the password is right"],
        },
      };
    case "access":
      return access();
    case "environment":
      return {
        version: "0.6.0",
        build: { profile: "release", target: "x86_64-linux", rustc: "1.88.0" },
        machine: { cores: 4, memory_bytes: 16e9, kernel: "6.1.0" },
        limits: { descriptors: 65_536, processes: 4096 },
        sandbox: ["no new privileges", "seccomp: 61 calls"],
        listeners: [
          { address: "0.0.0.0:443", protocol: "h1 h2 h3", connections: 38 },
          { address: "0.0.0.0:80", protocol: "h1", connections: 2 },
        ],
      };
    case "resources": {
      const s = activity(number("from"), number("to"), 60);
      return {
        ...s,
        columns: ["eth0_rx_bytes", "eth0_tx_bytes", "softirq_share", "descriptors"],
        rows: s.rows.map((r) => r && [r[2], r[3], 0.02, 200]),
      };
    }
    case "statistics":
      {
        const counts = (k) => ({
          since_unix_ms: now() - 9e6,
          requests: 12_033 * k,
          methods: { GET: 11_800 * k, POST: 233 * k, other: 0 },
          protocols: { "HTTP/1.1": 9000 * k, "HTTP/2.0": 3033 * k },
          statuses: { 200: 11_000 * k, 404: 900 * k, 500: k },
          workers: { started: k, reused: 90 * k },
          bytes: { in: 8e6 * k, out: 900e6 * k },
        });
        return { start: counts(100), today: counts(10), zero: counts(1) };
      }
      return {
        since: {
          start: { requests: 12_033_112, errors: 811 },
          today: { requests: 801_112, errors: 12 },
          zeroing: { requests: 901, errors: 0 },
        },
        by_method: [
          { method: "GET", start: 11_800_000, today: 790_000, zeroing: 880 },
          { method: "POST", start: 233_000, today: 11_112, zeroing: 21 },
        ],
      };
    case "audit":
      return {
        entries: [
          {
            unix_ms: now() - 90_000,
            who: "ada",
            from: "127.0.0.1",
            action: "login",
            outcome: "by password",
          },
          {
            unix_ms: now() - 30_000,
            who: "ada",
            from: "127.0.0.1",
            action: "programs/recycle app/orders.py",
            outcome: "done",
          },
        ],
      };
    default:
      return null;
  }
}

function access() {
  const route = (index, path, who, more = {}) => ({
    index,
    path,
    when: null,
    handler: "files",
    place: `hob.toml:${20 + 5 * index}`,
    internal: false,
    open: who === "everybody",
    who,
    access: null,
    sign_in: null,
    satisfy: null,
    limits: [],
    ...more,
  });
  const sign_in = { place: "hob.toml:31", auth: "staff", kind: "htpasswd", users: [], groups: [] };
  const allow = ["10.0.0.0/8"];
  return {
    sites: [
      {
        site: "shop.example.org",
        names: ["shop.example.org", "www.shop.example.org"],
        place: "hob.toml:14",
        down: false,
        https_only: true,
        requires_certificate: false,
        routes: [
          route(0, "/cgi-bin/*", "who signs in to staff", { handler: "cgi", sign_in }),
          route(1, "/office/*", "who comes from 10.0.0.0/8", {
            access: { place: "hob.toml:26", allow, deny: [], methods: [], certificates: [] },
            limits: [{ limit: "rate", text: "10 requests in 1m of one client", place: null }],
          }),
          route(2, "/*", "everybody"),
        ],
      },
    ],
    more: false,
    bans: [{ name: "guessers", text: "20 in 10m of sign_in ban for 1h", place: "hob.toml:9" }],
  };
}
