//! Keys of what other programs collect: numbers for Prometheus, traces for a collector.

use super::*;

/// `[metrics]`
pub static METRICS: SchemaTable = SchemaTable {
    name: "metrics",
    header: "`[metrics]`",
    text: "What is counted for `/metrics`. There is one number for each combination of labels, so \
           labels are bounded: what is beyond a bound is counted as `other`.",
    base: None,
    keys: &[
        SchemaKey::new("sites", Integer { min: 0, max: 1000 }, Preset::Integer(100))
            .says(
                "Sites with numbers of their own, by their first name. A site that has some keeps \
                 them over reloads, as long as the server runs.",
            )
            .example("20"),
        SchemaKey::new(
            "programs",
            Integer { min: 0, max: 1000 },
            Preset::Integer(100),
        )
        .says("Programs with numbers of their own, by their route.")
        .example("20"),
    ],
};

/// `[otlp]`
pub static OTLP: SchemaTable = SchemaTable {
    name: "otlp",
    header: "`[otlp]`",
    text: "Sends traces to an OpenTelemetry collector: one span for each sampled request, with \
           what it waited for below it. Without this table requests belong to no trace, and \
           `traceparent` is a field like others.",
    base: None,
    keys: &[
        SchemaKey::new("endpoint", Text, Required)
            .says(
                "The collector, `http://` or `https://`, for OTLP over HTTP with protobuf. \
                 `/v1/traces` is added where it names no path.",
            )
            .example("\"http://127.0.0.1:4318\"")
            .aka(&["url", "address", "collector", "exporter"]),
        SchemaKey::new("ca", Path, Nothing("the system's authorities alone"))
            .says(
                "File with certificates of authorities, in PEM, one of which may have signed the \
                 collector's own: for an authority of your own. It is read at every start and \
                 reload, which is refused when it cannot be read or holds none. The server's \
                 account must be able to read it.",
            )
            .example("\"/etc/hob/collector-ca.pem\"")
            .aka(&["ca_file", "root", "roots", "certificate"]),
        SchemaKey::new(
            "one_in",
            Integer {
                min: 0,
                max: 1_000_000,
            },
            Preset::Integer(100),
        )
        .says("One in so many requests is sampled, by chance: 1 is every one, 0 is none.")
        .example("1")
        .aka(&["sample", "ratio", "sampling", "probability", "sample_rate"]),
        SchemaKey::new(
            "parent",
            Word(&["follow", "join", "ignore"]),
            Preset::Text("follow"),
        )
        .says(
            "What a request that comes with a `traceparent` means. `\"follow\"`: it belongs to \
             that trace, and is sampled if its caller says so. `\"join\"`: it belongs to that \
             trace, and `one_in` decides, for who cannot trust the callers. `\"ignore\"`: as if it \
             had none.",
        )
        .example("\"join\""),
        SchemaKey::new("service", Text, Preset::Text("hob"))
            .says("The name of this server among traces: `service.name`.")
            .example("\"shop-front\"")
            .aka(&["service_name", "name"]),
        SchemaKey::new("headers", Map(&FIELD_TO_TEXT), Nothing("none"))
            .says(
                "Fields of each request to the collector, for its access key, which may come from \
                 the environment: `\"Bearer ${OTLP_KEY}\"`.",
            )
            .example("{ Authorization = \"Bearer 5f3a91\" }"),
        SchemaKey::new(
            "queue",
            Size {
                min: 16 * KIB,
                max: 64 * MIB,
            },
            Preset::Size(256 * KIB),
        )
        .says(
            "Memory of each thread for requests that wait to be sent; what comes when it is \
                 full is not sent, and counted as `otlp_dropped`.",
        )
        .example("\"1MiB\""),
        SchemaKey::new(
            "batch",
            Integer {
                min: 1,
                max: 10_000,
            },
            Preset::Integer(512),
        )
        .says("Most requests that are sent together.")
        .example("2000")
        .aka(&["batch_size"]),
        SchemaKey::new("interval", TIME_OF_BATCH, secs(2))
            .says("How long a request waits at most until a batch is sent.")
            .example("\"500ms\"")
            .aka(&["delay", "schedule_delay"]),
        SchemaKey::new("timeout", TIME_OF_BATCH, secs(10))
            .says(
                "How long the collector may take for a batch. One that it does not take is tried \
                 again a few times if that may help, and then dropped.",
            )
            .example("\"3s\""),
    ],
};

/// `otlp.headers`
static FIELD_TO_TEXT: MapOf = MapOf {
    key: "header name",
    value: MapValue::Text,
};

const TIME_OF_BATCH: ValueType = Time {
    min: Duration::from_millis(100),
    max: Duration::from_secs(60),
};
