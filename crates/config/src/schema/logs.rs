//! Keys of access logs.

use super::*;

/// `[[log]]`
pub static LOG: SchemaTable = SchemaTable {
    name: "log",
    header: "`[[log]]`",
    text: "An access log: one line for each request. Listeners, sites and routes choose one by \
           name.",
    base: None,
    keys: &[
        SchemaKey::new("name", Text, Required)
            .says("The name by which listeners, sites and routes choose this log.")
            .example("\"main\""),
        SchemaKey::new(
            "file",
            Path,
            Nothing("none; give `file`, `stdout`, `pipe` or `syslog`"),
        )
        .says("File the lines are appended to. Its folder must exist.")
        .example("\"/var/log/hob/access.log\""),
        SchemaKey::new("stdout", Flag, Preset::Flag(false))
            .says("Lines go to standard output instead of a file.")
            .example("true"),
        SchemaKey::new("pipe", Texts, Preset::Texts(&[]))
            .says(
                "A program that reads the lines from its standard input, instead of a file: its \
                 path, and its arguments. The server starts it, as its own user, without a shell \
                 and with no environment but `PATH`; it starts another when it ends, after a \
                 second or more. What it has not read waits, up to what a pipe holds and 256 KiB; \
                 what is more is dropped and counted (`log_dropped`). At a reload another program \
                 is started for what comes from then on, and this one sees the end of its input.",
            )
            .example("[\"/usr/bin/rotatelogs\", \"/var/log/hob/access.%F\", \"86400\"]")
            .aka(&["program", "command"]),
        SchemaKey::new("syslog", OrText("to", &SYSLOG), Nothing("none")),
        SchemaKey::new("format", Text, Preset::Text("combined"))
            .says(
                "`\"common\"`, `\"combined\"`, `\"json\"`, or a line of your own in which each \
                 `{field}` is replaced. The reference page lists the fields at its end. Fields \
                 behind `json` are members besides: `\"json {header:accept} {total_ms}\"`. Of \
                 `{header:NAME}`, `{response:NAME}` and `{cookie:NAME}` 32 may stand in a format; \
                 1 KiB of each value is kept, 4 KiB of a request, and a value that was cut ends \
                 in `…`.",
            )
            .example("\"{time} {client} {method} {target} {status} {total_us}\""),
        SchemaKey::new(
            "rotate_size",
            Size {
                min: 0,
                max: 1 << 50,
            },
            Preset::Size(0),
        )
        .says("The file is rotated when it reaches this size; 0 is never.")
        .example("\"100MiB\""),
        SchemaKey::new("rotate", Word(&["never", "daily"]), Preset::Text("never"))
            .says("`\"daily\"` rotates the file when a new day begins (UTC).")
            .example("\"daily\""),
        SchemaKey::new(
            "keep",
            Integer {
                min: 1,
                max: 10_000,
            },
            Preset::Integer(7),
        )
        .says("Rotated files that are kept; older ones are deleted.")
        .example("30"),
        SchemaKey::new("compress", Flag, Preset::Flag(true))
            .says("Rotated files are compressed with gzip.")
            .example("false"),
    ],
};

/// Facilities of syslog, in the order of their numbers.
//= rfc5424#6.2.1
pub static FACILITIES: &[&str] = &[
    "kern", "user", "mail", "daemon", "auth", "syslog", "lpr", "news", "uucp", "cron", "authpriv",
    "ftp", "ntp", "audit", "alert", "clock", "local0", "local1", "local2", "local3", "local4",
    "local5", "local6", "local7",
];

/// Severities of syslog, in the order of their numbers.
//= rfc5424#6.2.1
pub static SEVERITIES: &[&str] = &[
    "emerg", "alert", "crit", "err", "warning", "notice", "info", "debug",
];

/// `[log.syslog]`
pub static SYSLOG: SchemaTable = SchemaTable {
    name: "syslog",
    header: "`syslog` of a log",
    text: "Sends the lines of a log to a collector of syslog instead of a file, as messages of RFC \
           5424. A string is short for a table with `to` alone. While the collector is not there, \
           256 KiB of lines wait; what is more is dropped and counted (`log_dropped`).",
    base: None,
    keys: &[
        SchemaKey::new("to", Text, Required)
            .says(
                "Where it listens. `\"udp:HOST:PORT\"`: a datagram for each line. \
                 `\"tcp:HOST:PORT\"`: one connection, each message behind its length (RFC 6587); \
                 lines that were on their way when it broke are sent again. `\"unix:PATH\"`: a \
                 Unix socket for datagrams. It may start later than hob.",
            )
            .example("\"udp:127.0.0.1:514\"")
            .aka(&["server", "address", "url", "host"]),
        SchemaKey::new("facility", Word(FACILITIES), Preset::Text("daemon"))
            .says("What the collector is to take hob for.")
            .example("\"local0\""),
        SchemaKey::new("severity", Word(SEVERITIES), Preset::Text("info"))
            .says("How grave each line is.")
            .example("\"notice\"")
            .aka(&["level", "priority"]),
        SchemaKey::new("app_name", Text, Preset::Text("hob"))
            .says("Who sends, at most 48 bytes of ASCII without spaces.")
            .example("\"shop-front\"")
            .aka(&["tag", "ident", "app", "name", "program"]),
        SchemaKey::new(
            "host_name",
            Text,
            Nothing("what the kernel calls the machine"),
        )
        .says("The machine that sends, at most 255 bytes of ASCII without spaces.")
        .example("\"web1.example.org\"")
        .aka(&["hostname"]),
    ],
};
