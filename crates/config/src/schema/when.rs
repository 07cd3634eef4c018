//! Keys of `when`: which requests for its path a route answers.

use super::*;

pub(super) const KEY: SchemaKey =
    SchemaKey::new("when", ValueType::Table(&WHEN), Nothing("")).aka(&["where", "only_if"]);

/// `when` of a route
pub static WHEN: SchemaTable = SchemaTable {
    name: "when",
    header: "`when` of a route",
    text: "Which requests for its path the route answers: all that is said here has to hold, and \
           where a list is said, one of it. For others the route is as if it were not there: the \
           next one answers whose path matches, so several routes may have one `path`, all but \
           the last with a `when`. What a client writes into a field, the query or a cookie it \
           writes as it likes: who may is said by `access`.",
    base: None,
    keys: &[
        SchemaKey::new("method", Texts, Nothing("any"))
            .says("Its method is one of these. HEAD goes along with GET.")
            .example("[\"POST\", \"PUT\"]")
            .aka(&["methods"]),
        SchemaKey::new("host", Texts, Nothing("any"))
            .says(
                "It asks for one of these hosts, which are written as `names` of a site are: \
                 exact, or `*.example.org` for all below one.",
            )
            .example("[\"beta.example.org\"]")
            .aka(&["hosts", "names"]),
        SchemaKey::new("listener", Texts, Nothing("any"))
            .says("It came in by one of these listeners, which are written as their `address` is.")
            .example("[\"127.0.0.1:8080\"]")
            .aka(&["listen", "listeners"]),
        SchemaKey::new("field", Map(&FIELD_TO_VALUE), Nothing("any"))
            .says(
                "It has all of these header fields. A value is compared as a whole with each line \
                 of its field; `*` alone is any, and at the begin or the end of a value it stands \
                 for any text: `\"*Mobile*\"`. Names are compared without case, values with it.",
            )
            .example("{ X-Beta = \"1\" }")
            .aka(&["header", "headers", "fields"]),
        SchemaKey::new("query", Map(&QUERY_TO_VALUE), Nothing("any"))
            .says(
                "Its query has all of these, with values in the same words. They are written \
                 decoded: a space is a space, not `+` or `%20`. Of several with one name the first \
                 counts.",
            )
            .example("{ format = \"json\" }")
            .aka(&["arguments", "args", "parameters"]),
        SchemaKey::new("cookie", Map(&COOKIE_TO_VALUE), Nothing("any"))
            .says(
                "It has all of these cookies, with values in the same words. Of several with one \
                 name the first counts.",
            )
            .example("{ ab = \"b\" }")
            .aka(&["cookies"]),
        SchemaKey::new("address", Texts, Nothing("any"))
            .says(
                "Its client is one of these: addresses, networks such as `10.0.0.0/8`, `unix` for \
                 whoever connects over a Unix socket. Behind a proxy it is the one that `trusted` \
                 of the listener lets that name.",
            )
            .example("[\"10.0.0.0/8\"]")
            .aka(&["addresses", "source", "remote_ip", "client"]),
        SchemaKey::new("country", Texts, Nothing("any"))
            .says(
                "Its client's address is of one of these countries, says the file of `countries`: \
                 two letters of ISO 3166-1, or `unknown` where none is known.",
            )
            .example("[\"DE\", \"AT\"]")
            .aka(&["countries"]),
        SchemaKey::new("tls", Flag, Nothing("either"))
            .says(
                "It comes over TLS, with this server or a trusted one in front of it; `false` is \
                 in clear text.",
            )
            .example("true")
            .aka(&["secure"]),
        SchemaKey::new("share", Text, Nothing("everybody"))
            .says(
                "Its client is of this share of all clients, by its address: the same one always, \
                 also after a restart and on another machine, and with a larger share it still is. \
                 Addresses of IPv6 that begin with 64 same bits are one client. Of two routes with \
                 one path, `\"10%\"` and behind it `\"30%\"`, the second has a fifth of all.",
            )
            .example("\"10%\"")
            .aka(&["percent", "weight", "split"]),
        SchemaKey::new("user", Texts, Nothing("any"))
            .says(
                "Who has signed in is one of these accounts. It is asked last, by the route's own \
                 `require`: who has not signed in is asked to, and who is another one is left to \
                 the next route, whose own `require` says whether they may.",
            )
            .example("[\"ann\"]")
            .aka(&["users"]),
        SchemaKey::new("group", Texts, Nothing("any"))
            .says("Who has signed in is in one of these groups; likewise.")
            .example("[\"staff\"]")
            .aka(&["groups"]),
    ],
};

/// `when.field`
static FIELD_TO_VALUE: MapOf = MapOf {
    key: "header name",
    value: MapValue::Text,
};
/// `when.query`
static QUERY_TO_VALUE: MapOf = MapOf {
    key: "name in the query",
    value: MapValue::Text,
};
/// `when.cookie`
static COOKIE_TO_VALUE: MapOf = MapOf {
    key: "cookie",
    value: MapValue::Text,
};
