//! Keys of accounts that people sign in with, and of who sees a site that is down.

use super::*;

/// A key of sites.
pub(super) const MAINTENANCE_ALLOW: SchemaKey =
    SchemaKey::new("maintenance_allow", Texts, Preset::Texts(&[]))
        .says(
            "Who sees the site while it is down for maintenance (`hob maintenance on`), by address \
             as in `allow` of `access`; everybody else gets a 503.",
        )
        .example("[\"10.0.0.0/8\"]");

/// `[[auth]]`
pub static AUTH: SchemaTable = SchemaTable {
    name: "auth",
    header: "`[[auth]]`",
    text: "Accounts that people sign in with where `require` of a site or a route names them: in a \
           file (`htpasswd`), those of a service that a route of the site asks (`forward`), of \
           whoever signs tokens (`jwt`), or of the system (`pam`); or none, and links that were \
           signed are let in (`signed_urls`). Passwords of files are checked away from the \
           threads that serve, and what was right is remembered for a while, as a keyed hash. \
           Wrong ones make the next of that account and of that network wait, up to ten seconds.",
    base: None,
    keys: &[
        SchemaKey::new("name", Text, Required)
            .says("What `require` calls these accounts.")
            .example("\"staff\""),
        SchemaKey::new("htpasswd", Path, Nothing("none"))
            .says(
                "File with a line `NAME:HASH` for each account, as Apache's `htpasswd` and `hob \
                 password FILE NAME` write them. Hashes are Argon2, bcrypt, SHA-crypt (`$5$`, \
                 `$6$`); apr1 and SHA1 are read, too, but can be guessed too fast. The server's \
                 own user reads it; changes count within a second. Captures of the paths of routes \
                 that ask for these accounts may be parts of its names, as may `{host}`: \
                 `/home/{user}/.htpasswd`; where there is no such file, nobody has an account.",
            )
            .example("\"/etc/hob/staff.htpasswd\"")
            .aka(&["file", "users", "user_file", "password_file", "auth_user_file"]),
        SchemaKey::new("groups", Path, Nothing("none"))
            .says("File with a line `GROUP: NAME NAME` for each group, as Apache has them.")
            .example("\"/etc/hob/staff.groups\"")
            .aka(&["group_file", "auth_group_file"]),
        SchemaKey::new("forward", OrText("path", &FORWARD), Nothing("")).aka(&["forward_auth"]),
        SchemaKey::new("signed_urls", Path, Nothing("none"))
            .says(
                "File with keys, one a line, of 32 characters at least: links that were signed with \
                 one of them are let in until they are over. `hob sign` signs, and so does any \
                 program: behind the path and query of a link, whose last parameter is \
                 `expires=SECONDS` (Unix time), comes `&signature=` with the HMAC-SHA256 of all \
                 before the `&`, in base64 for URLs without padding. The server's own user reads \
                 the file, at a start and a reload.",
            )
            .example("\"/etc/hob/links.keys\"")
            .aka(&["secure_link"]),
        SchemaKey::new("jwt", ValueType::Table(&JWT), Nothing("")).aka(&["tokens"]),
        SchemaKey::new("pam", OrText("service", &PAM), Nothing("")).aka(&["system"]),
        SchemaKey::new("realm", Text, Inherited("`name`"))
            .says("What browsers show beside the fields for name and password.")
            .example("\"Staff only\""),
        SchemaKey::new(
            "remember",
            Time {
                min: Duration::ZERO,
                max: Duration::from_secs(3600),
            },
            secs(300),
        )
        .says(
            "So long a password that was right is not hashed again. A changed file or a reload \
             ends it.",
        )
        .example("\"1m\""),
    ],
};

/// `forward` of `[[auth]]`
pub static FORWARD: SchemaTable = SchemaTable {
    name: "forward",
    header: "`forward` of `[[auth]]`",
    text: "A route of the site that is asked about each request, as single sign-on services want it \
           (\"forward auth\"): with GET, the request's own fields, and its method, target and host \
           in `X-Forwarded-Method`, `X-Forwarded-Uri` and `X-Forwarded-Host`. An answer of 2xx \
           lets the request in; any other is what its client gets. A plain string is `path`.",
    base: None,
    keys: &[
        SchemaKey::new("path", Text, Required)
            .says(
                "A path that the route answers; the route may be `internal`, and its own `access`, \
                 `rate` and `require` are not asked.",
            )
            .example("\"/verify\""),
        SchemaKey::new("user", Text, Preset::Text("Remote-User"))
            .says("The field of the answer that has the name.")
            .example("\"X-Auth-Request-User\""),
        SchemaKey::new("groups", Text, Preset::Text("Remote-Groups"))
            .says("The field of the answer that has the groups, with commas between them.")
            .example("\"X-Auth-Request-Groups\""),
        SchemaKey::new(
            "fields",
            Texts,
            Preset::Texts(&[
                "Remote-User",
                "Remote-Groups",
                "Remote-Name",
                "Remote-Email",
            ]),
        )
        .says(
            "Fields of the answer that programs and proxied servers get with the request; what a \
             client sends under these names they do not get.",
        )
        .example("[\"X-Auth-Request-User\", \"X-Auth-Request-Email\"]")
        .aka(&["copy_headers", "authResponseHeaders"]),
    ],
};

/// `pam` of `[[auth]]`
pub static PAM: SchemaTable = SchemaTable {
    name: "pam",
    header: "`pam` of `[[auth]]`",
    text: "Accounts of the system, or of whatever its PAM asks: passwords are checked \
           (`pam_authenticate`), and whether the account is locked, expired or has to have a new \
           one (`pam_acct_mgmt`), which lets nobody in. A process of its own talks to PAM for each \
           password that is not remembered. Groups are those of the system. A plain string is \
           `service`.",
    base: None,
    keys: &[
        SchemaKey::new("service", Text, Required)
            .says("The service: a file in `services`.")
            .example("\"hob\"")
            .aka(&["service_name"]),
        SchemaKey::new("user", Text, Nothing("the account of programs"))
            .says(
                "The account that the process runs as, when hob is started as root. To read the \
                 passwords of this machine's own accounts it has to be in the group of \
                 `/etc/shadow`, which `hob-pam` of the package is. It gains no rights besides.",
            )
            .example("\"hob-pam\""),
        SchemaKey::new("services", Path, Nothing("where the system has them"))
            .says(
                "A folder that has the service, instead of `/etc/pam.d` (Linux-PAM 1.4 or newer).",
            )
            .example("\"/etc/hob/pam.d\""),
        SchemaKey::new(
            "timeout",
            Time {
                min: Duration::from_secs(1),
                max: Duration::from_secs(300),
            },
            secs(10),
        )
        .says(
            "So long an answer of PAM is waited for, and as long for one's turn before. Then the \
             process is killed, and the answer is a 503.",
        )
        .example("\"30s\""),
        SchemaKey::new(
            "processes",
            Integer { min: 1, max: 256 },
            Preset::Integer(4),
        )
        .says("Most processes at a time; whoever comes then waits for one's turn.")
        .example("16"),
        SchemaKey::new(
            "remember",
            Time {
                min: Duration::ZERO,
                max: Duration::from_secs(3600),
            },
            secs(60),
        )
        .says(
            "So long PAM is not asked again about a password that was right. A reload ends it, and \
             so does a change of the service or of `/etc/passwd`, `/etc/shadow` or `/etc/group`. \
             Nothing else that PAM asks tells of a change.",
        )
        .example("\"10s\""),
    ],
};

/// `jwt` of `[[auth]]`
pub static JWT: SchemaTable = SchemaTable {
    name: "jwt",
    header: "`jwt` of `[[auth]]`",
    text: "Tokens that somebody else has signed for who signs in (JSON Web Tokens, RFC 7519), as \
           OpenID Connect and OAuth 2.0 have them: a request brings one as `Authorization: Bearer \
           TOKEN`, or in a cookie. It lets in until it is over (`exp`, which it has to have), and \
           not before its `nbf`. One that was good is remembered for a minute at most, as a keyed \
           hash. Tokens of more than 8 KiB are refused.",
    base: None,
    keys: &[
        SchemaKey::new("keys", Path, Nothing("`keys_url`"))
            .says(
                "File with the issuer's public keys, a JSON Web Key Set (RFC 7517), as it stands \
                 at the `jwks_uri` of an issuer. The server's own user reads it; changes count \
                 within a second, and a new file that is wrong leaves the keys that there were. A \
                 key checks only what its own kind signs, and where it has an `alg` only that.",
            )
            .example("\"/etc/hob/jwks.json\"")
            .aka(&["jwks", "jwks_file", "key_file", "auth_jwt_key_file"]),
        SchemaKey::new("keys_url", Text, Nothing("`keys`"))
            .says(
                "Where the issuer has them itself: its `jwks_uri`, an `https://` address. They \
                 are fetched at the start, then as often as `keys_every` says, and when a token \
                 names a key that is not there, which waits for them; every 10 seconds at most. \
                 While they cannot be fetched those that were there last are good; while there are \
                 none, tokens are answered with 503. They outlive a reload, and no restart.",
            )
            .example("\"https://id.example.com/jwks\"")
            .aka(&["jwks_uri", "jwks_url"]),
        SchemaKey::new("keys_ca", Path, Nothing("the system's authorities alone"))
            .says(
                "File with certificates of authorities, in PEM, one of which may have signed the \
                 certificate at `keys_url`. It is read at every start and reload.",
            )
            .example("\"/etc/hob/issuer-ca.pem\""),
        SchemaKey::new(
            "keys_every",
            Time {
                min: Duration::from_secs(10),
                max: Duration::from_secs(7 * 86_400),
            },
            secs(3600),
        )
        .says("So old the keys of `keys_url` may become before they are fetched again.")
        .example("\"15m\""),
        SchemaKey::new("issuer", Text, Required)
            .says("Who has made the tokens: their `iss`, letter by letter.")
            .example("\"https://id.example.com\"")
            .aka(&["iss"]),
        SchemaKey::new("audience", TextOrTexts, Required)
            .says(
                "For whom tokens are: one of these has to stand in their `aud`. It is what the \
                 issuer calls this site, such as a client's id.",
            )
            .example("[\"shop\", \"shop-api\"]")
            .aka(&["aud", "audiences"]),
        SchemaKey::new(
            "algorithms",
            Words(crate::auth::TOKEN_ALGORITHMS),
            Preset::Texts(crate::auth::SIGNED_BY_PAIR),
        )
        .says(
            "How tokens may be signed. `HS256`, `HS384` and `HS512` count only where they are \
             named, and need a key of the kind `oct`: a secret, with which whoever checks tokens \
             can make them.",
        )
        .example("[\"ES256\"]")
        .aka(&["algs", "alg"]),
        SchemaKey::new(
            "leeway",
            Time {
                min: Duration::ZERO,
                max: Duration::from_secs(300),
            },
            secs(30),
        )
        .says("So far the issuer's clock may be from this one.")
        .example("\"5s\"")
        .aka(&["clock_skew"]),
        SchemaKey::new("user", Text, Preset::Text("sub"))
            .says(
                "The claim that has the name, for `REMOTE_USER`, the log and `users`: a text. One \
                 within another is written as a JSON pointer, `/account/name`. Tokens without it \
                 are refused.",
            )
            .example("\"email\""),
        SchemaKey::new("groups", Text, Preset::Text("groups"))
            .says(
                "The claim that has the groups: a list of texts, or a text with spaces between \
                 them, such as `scope`.",
            )
            .example("\"/realm_access/roles\""),
        SchemaKey::new("cookie", Text, Nothing("none"))
            .says(
                "A cookie that may have the token instead of `Authorization`. Let whoever sets it \
                 say `HttpOnly`, `Secure` and `SameSite`.",
            )
            .example("\"session\""),
        SchemaKey::new("fields", Map(&FIELD_TO_CLAIM), Nothing("none"))
            .says(
                "Fields that programs and proxied servers get with the request, and the claims \
                 that they hold: texts, numbers, `true` and `false`, or lists of them with commas \
                 between. What a client sends under these names they do not get.",
            )
            .example("{ X-Email = \"email\" }")
            .aka(&["claims", "headers"]),
    ],
};

static FIELD_TO_CLAIM: MapOf = MapOf {
    key: "header name",
    value: MapValue::Text,
};
