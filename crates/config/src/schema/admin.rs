//! Keys of the admin pages.

use super::tls::KEY_FILE;
use super::*;

/// `[admin]`
pub static ADMIN: SchemaTable = SchemaTable {
    name: "admin",
    header: "`[admin]`",
    text: "The admin pages and their API, on a listener of their own. There is none without this \
           table. `hob serve` prints a URL with which one browser can log in, once; `hob status \
           --admin-url` prints another. Whoever uses them beyond that has a password. Requests \
           there stand in no access log and no statistics.",
    base: None,
    keys: &[
        SchemaKey::new("address", Text, Preset::Text("127.0.0.1:9080"))
            .says(
                "Where the pages are, as in `[[listen]]`; a Unix socket is not possible. Give it \
                 `tls` where it can be reached from other machines.",
            )
            .example("\"localhost:9080\"")
            .aka(&["listen", "port", "bind"]),
        SchemaKey::new("tls", OrFlag("certificate", &ADMIN_TLS), Nothing("")),
        SchemaKey::new("names", Texts, Preset::Texts(&[]))
            .says(
                "Host names that the pages are asked for by, besides the listener's own addresses \
                 and, where only this machine can reach it, `localhost`. A request for another \
                 name is refused (421): a page elsewhere could otherwise have a browser ask here \
                 in a name of its own.",
            )
            .example("[\"admin.example.org\"]")
            .aka(&["hosts"]),
        SchemaKey::new("user", Tables(&ADMIN_USER), Nothing("")).aka(&["users", "account"]),
        SchemaKey::new(
            "sessions",
            Integer {
                min: 1,
                max: 10_000,
            },
            Preset::Integer(32),
        )
        .says(
            "Browsers that are logged in at a time. At one more, the session that was used least \
             recently ends.",
        )
        .example("4"),
        SchemaKey::new("session_time", TIME_OF_SESSION, secs(12 * 3600))
            .says("How long a login holds.")
            .example("\"1h\""),
        SchemaKey::new("token_time", TIME_OF_SESSION, secs(15 * 60))
            .says("How long a URL that was printed can be used to log in.")
            .example("\"2m\""),
        SchemaKey::new(
            "login_tries",
            Integer {
                min: 1,
                max: 10_000,
            },
            Preset::Integer(10),
        )
        .says(
            "Failed logins of one client address in a minute, or of one network of IPv6 (/64); \
             then it is answered with 429 until the minute is over.",
        )
        .example("3"),
        SchemaKey::new("edit", Flag, Preset::Flag(false))
            .says(
                "Users who may operate may change the config's files from the pages. Who can do \
                 that can have hob run any program. It works only where hob was not started by \
                 root, and owns the files.",
            )
            .example("true"),
        SchemaKey::new("audit", Path, Nothing("none; the log of the server has it"))
            .says(
                "File to which each action is appended as a line of JSON: who, from where, what, \
                 and what came of it. The server's own user must be able to write it.",
            )
            .example("\"/var/log/hob/admin.jsonl\"")
            .aka(&["audit_log"]),
    ],
};

/// `[[admin.user]]`
pub static ADMIN_USER: SchemaTable = SchemaTable {
    name: "user",
    header: "`[[admin.user]]`",
    text: "Someone who can log in to the admin pages with a password.",
    base: None,
    keys: &[
        SchemaKey::new("name", Text, Required)
            .says("Name to log in with.")
            .example("\"anna\""),
        SchemaKey::new("password", Text, Required)
            .says(
                "Hash of the password, as `hob password` makes it: Argon2 in its usual form \
                 (`$argon2id$...`). With `${NAME}` it can come from the environment.",
            )
            .example(concat!(
                "\"$argon2id$v=19$m=19456,t=2,p=1$gr3J5Pzo53rh2jbF01SBBA$",
                "mQ/h5VKrKR37u7J5Fy6oIa+0BzXNZKxJrQ2QECrYrH8\""
            ))
            .aka(&["hash", "password_hash"]),
        SchemaKey::new("role", Word(&["look", "operate"]), Preset::Text("look"))
            .says("`\"look\"` sees everything; `\"operate\"` may also do everything.")
            .example("\"operate\""),
    ],
};

/// `admin.tls`
pub static ADMIN_TLS: SchemaTable = SchemaTable {
    name: "tls",
    header: "`tls` of `[admin]`",
    text: "TLS for the admin pages. `true` is a certificate that hob makes; a plain string is \
           `certificate`.",
    base: None,
    keys: &[
        SchemaKey::new(
            "certificate",
            OrWord("self-signed", &Path),
            Nothing("`\"self-signed\"`"),
        )
        .says(
            "File with the certificate and those between it and its root, in PEM. \
             `\"self-signed\"` is one that hob makes and keeps in its `state` folder.",
        )
        .example("\"/etc/hob/admin.pem\"")
        .aka(&["cert", "certificate_file"]),
        KEY_FILE,
    ],
};

const TIME_OF_SESSION: ValueType = Time {
    min: Duration::from_secs(1),
    max: Duration::from_secs(30 * 86_400),
};
