//! Keys of automatic certificates.

use super::*;

/// `[acme]`
pub static ACME: SchemaTable = SchemaTable {
    name: "acme",
    header: "`[acme]`",
    text: "How certificates are got by themselves, for sites and listeners that say `tls = \
           \"auto\"`: from an authority that speaks ACME, renewed before they end, and kept in the \
           `state` folder. To use an authority is to agree to its terms.",
    base: None,
    keys: &[
        SchemaKey::new(
            "directory",
            Text,
            Preset::Text("https://acme-v02.api.letsencrypt.org/directory"),
        )
        .says(
            "Address of the authority's directory. Each authority has an account and certificates \
             of its own, so one for trying things out can stand here first.",
        )
        .example("\"https://acme-staging-v02.api.letsencrypt.org/directory\"")
        .aka(&["server", "ca_url", "acme_ca", "url", "issuer"]),
        SchemaKey::new("contact", Texts, Preset::Texts(&[]))
            .says("Mail addresses the authority may write to. Told once, with the account.")
            .example("[\"admin@example.org\"]")
            .aka(&["email", "mail", "contacts"]),
        SchemaKey::new(
            "challenge",
            Word(&["http-01", "tls-alpn-01", "dns-01"]),
            Nothing(
                "`\"http-01\"` with a listener in clear text, else `\"tls-alpn-01\"`; \
                 `\"dns-01\"` for names with `*.`",
            ),
        )
        .says(
            "How the authority sees that a name is ours. `\"http-01\"`: it asks port 80 of the \
             name, which must lead to a listener in clear text. `\"tls-alpn-01\"`: port 443, which \
             must lead to a listener with TLS. `\"dns-01\"`: it looks for a record that the program \
             of `dns` sets.",
        )
        .example("\"tls-alpn-01\"")
        .aka(&["challenges", "method", "challenge_type"]),
        SchemaKey::new("ca", Path, Nothing("the system's authorities alone"))
            .says(
                "File with certificates of authorities, in PEM, one of which may have signed the \
                 directory's own: for an authority of your own. A file that holds none is refused.",
            )
            .example("\"/etc/hob/acme-ca.pem\"")
            .aka(&["ca_file", "root", "roots", "trusted_roots"]),
        SchemaKey::new("profile", Text, Nothing("the authority's usual one"))
            .says("Which kind of certificate, if the authority offers several.")
            .example("\"shortlived\""),
        SchemaKey::new("external_account", ValueType::Table(&EXTERNAL_ACCOUNT), Nothing(""))
            .aka(&["eab", "external_account_binding"]),
        SchemaKey::new("dns", OrText("run", &DNS), Nothing("")).aka(&["hook", "dns_hook", "exec"]),
    ],
};

/// `[acme.external_account]`
pub static EXTERNAL_ACCOUNT: SchemaTable = SchemaTable {
    name: "external_account",
    header: "`[acme.external_account]`",
    text: "The account at the authority that was agreed on elsewhere, where it wants one.",
    base: None,
    keys: &[
        SchemaKey::new("id", Text, Required)
            .says("Its name: the key identifier.")
            .example("\"kid-1\"")
            .aka(&["kid", "key_id"]),
        SchemaKey::new("key", Path, Required)
            .says(
                "File with its key, as the authority gave it (base64). The first process reads it.",
            )
            .example("\"/etc/hob/eab.key\"")
            .aka(&["hmac", "hmac_key", "mac_key"]),
    ],
};

/// `[acme.dns]`
pub static DNS: SchemaTable = SchemaTable {
    name: "dns",
    header: "`[acme.dns]`",
    text: "A program that sets and removes records for `\"dns-01\"`. It is called with `add` or \
           `remove`, the record's name (`_acme-challenge.example.org`) and its text, as the user \
           that the server runs as. A plain string is `run`.",
    base: None,
    keys: &[
        SchemaKey::new("run", Path, Required)
            .says(
                "The program. It has done its work when it ends with 0; what it prints on standard \
                 error is told when not.",
            )
            .example("\"/usr/local/bin/dns-record\"")
            .aka(&["program", "command", "script", "exec"]),
        SchemaKey::new("arguments", Texts, Preset::Texts(&[]))
            .says("Arguments before those that say what to do.")
            .example("[\"--zone\", \"example.org\"]")
            .aka(&["args"]),
        SchemaKey::new("timeout", CALL_TIME, secs(120))
            .says("How long one call may take; then the program is killed.")
            .example("\"5m\""),
        SchemaKey::new("wait", TIME_TO_HOUR, secs(0))
            .says(
                "How long after the last record is set the authority is told to look, for a \
                 program that ends before all name servers have it.",
            )
            .example("\"30s\"")
            .aka(&["propagation", "propagation_delay", "delay"]),
    ],
};

const CALL_TIME: ValueType = Time {
    min: Duration::from_secs(1),
    max: Duration::from_secs(3600),
};
