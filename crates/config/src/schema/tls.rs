//! Keys of TLS.

use super::*;

/// `tls` of `[[listen]]`
pub static LISTEN_TLS: SchemaTable = SchemaTable {
    name: "tls",
    header: "`tls` of `[[listen]]`",
    text: "TLS on this listener. `true` is TLS with the certificates of the sites, or one that \
           signs itself where the listener can be reached from this machine only; a plain string \
           is `certificate`.",
    base: None,
    keys: &[
        SchemaKey::new(
            "certificate",
            OrWord("auto", &OrWord("self-signed", &Path)),
            Nothing("the first site's that has one"),
        )
        .says(
            "File with the certificate and those between it and its root, in PEM, for hosts whose \
             site has none of its own. `\"auto\"` is one for the names of each such site, got from \
             an authority as `[acme]` says. `\"self-signed\"` is one that hob makes for `localhost` \
             and the names of the sites, keeps in its `state` folder and makes again before it \
             expires. Changed files are taken over by themselves, once certificate and key fit \
             together.",
        )
        .example("\"/etc/hob/example.org.pem\"")
        .aka(&["cert", "certificate_file", "chain", "fullchain"]),
        KEY_FILE,
        SchemaKey::new("minimum", Word(&["1.2", "1.3"]), Preset::Text("1.2"))
            .says("The oldest version of TLS that is spoken.")
            .example("\"1.3\"")
            .aka(&["min", "min_version", "version", "versions"]),
        SchemaKey::new("suites", Words(crate::tls::SUITES), Preset::Texts(&[]))
            .says(
                "Cipher suites by their IANA names, the preferred one first. An empty list is \
                 every one that is safe, in the order of the client.",
            )
            .example("[\"TLS_AES_128_GCM_SHA256\", \"TLS_CHACHA20_POLY1305_SHA256\"]"),
        SchemaKey::new("http3", Flag, Preset::Flag(true))
            .says(
                "HTTP/3 on the UDP port of the same number, which answers over TCP tell clients of \
                 (`Alt-Svc`). A listener of systemd has it where a UDP socket of the same name was \
                 handed down too, one on a Unix socket never, and none is spoken where `suites` \
                 leaves out TLS 1.3.",
            )
            .example("false")
            .aka(&["h3", "http/3"]),
        SchemaKey::new(
            "http3_port",
            Integer {
                min: 1,
                max: 65_535,
            },
            Nothing("the one it is spoken on"),
        )
        .says(
            "The UDP port that answers over TCP tell of, where clients reach it under another \
             number: behind a firewall or in a container.",
        )
        .example("443")
        .aka(&["alt_svc", "alt-svc", "quic_port"]),
    ],
};

/// `[site.tls]`
pub static SITE_TLS: SchemaTable = SchemaTable {
    name: "tls",
    header: "`[site.tls]`",
    text: "What TLS listeners offer to clients that ask for a host of this site. A plain string is \
           `certificate`.",
    base: None,
    keys: &[
        SchemaKey::new(
            "certificate",
            OrWord("auto", &OrWord("self-signed", &Path)),
            Nothing("the listener's"),
        )
        .says(
            "File with the certificate and those between it and its root, in PEM; `\"auto\"` for \
             one that is got from an authority for the names of this site, as `[acme]` says; or \
             `\"self-signed\"`, as for a listener.",
        )
        .example("\"/etc/hob/example.org.pem\"")
        .aka(&["cert", "certificate_file", "chain", "fullchain"]),
        KEY_FILE,
        SchemaKey::new(
            "client",
            Word(&["none", "ask", "require"]),
            Preset::Text("none"),
        )
        .says(
            "Whether clients need a certificate too. `\"ask\"`: one may be shown, and must be \
                 good then; `\"require\"`: without one there is no handshake. Programs find it in \
                 `SSL_CLIENT_VERIFY`, `SSL_CLIENT_S_DN` and others.",
        )
        .example("\"ask\"")
        .aka(&["mtls", "verify"]),
        SchemaKey::new("client_ca", Path, Nothing("none"))
            .says(
                "File with the certificates of those who may have signed a client's, in PEM. Read \
                 at the start and at each reload.",
            )
            .example("\"/etc/hob/clients-ca.pem\"")
            .aka(&["ca", "client_authorities"]),
    ],
};

/// `hsts` of `[[site]]`
pub static HSTS: SchemaTable = SchemaTable {
    name: "hsts",
    header: "`hsts` of a site",
    text: "Strict-Transport-Security: for how long browsers do not even try this site in clear \
           text. Needs `https_only`. A plain string is `age`.",
    base: None,
    keys: &[
        SchemaKey::new("age", TIME_TO_YEARS, Required)
            .says(
                "How long, from each answer on. It cannot be taken back before: begin with a short \
                 time.",
            )
            .example("\"365d\"")
            .aka(&["max_age", "max-age"]),
        SchemaKey::new("subdomains", Flag, Preset::Flag(false))
            .says("The same for every host below this one.")
            .example("true")
            .aka(&["include_subdomains"]),
        SchemaKey::new("preload", Flag, Preset::Flag(false))
            .says("Makers of browsers may put the site on their lists.")
            .example("true"),
    ],
};

const TIME_TO_YEARS: ValueType = Time {
    min: Duration::ZERO,
    max: Duration::from_secs(10 * 365 * 86_400),
};

pub(super) const KEY_FILE: SchemaKey =
    SchemaKey::new("key", Path, Nothing("the file of `certificate`"))
        .says(
            "File with the certificate's private key, in PEM. The first process reads it: the user \
         that the server runs as needs no access, and programs should have none.",
        )
        .example("\"/etc/hob/example.org.key\"")
        .aka(&["private_key", "key_file"]);
