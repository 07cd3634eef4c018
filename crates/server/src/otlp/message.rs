//! The messages of OTLP that are sent and read, with the numbers of their fields
//! (`opentelemetry/proto/trace/v1/trace.proto` and its neighbours). Fields that are never set are
//! left out: to a reader they are at their defaults.

use prost::{Message, Oneof};

/// What is sent.
#[derive(Clone, PartialEq, Message)]
pub(super) struct Export {
    #[prost(message, repeated, tag = "1")]
    pub(super) resource_spans: Vec<ResourceSpans>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct ResourceSpans {
    #[prost(message, optional, tag = "1")]
    pub(super) resource: Option<Resource>,
    #[prost(message, repeated, tag = "2")]
    pub(super) scope_spans: Vec<ScopeSpans>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct Resource {
    #[prost(message, repeated, tag = "1")]
    pub(super) attributes: Vec<KeyValue>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct ScopeSpans {
    #[prost(message, optional, tag = "1")]
    pub(super) scope: Option<Scope>,
    #[prost(message, repeated, tag = "2")]
    pub(super) spans: Vec<Span>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct Scope {
    #[prost(string, tag = "1")]
    pub(super) name: String,
    #[prost(string, tag = "2")]
    pub(super) version: String,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct Span {
    #[prost(bytes = "vec", tag = "1")]
    pub(super) trace_id: Vec<u8>,
    #[prost(bytes = "vec", tag = "2")]
    pub(super) span_id: Vec<u8>,
    #[prost(bytes = "vec", tag = "4")]
    pub(super) parent_span_id: Vec<u8>,
    #[prost(string, tag = "5")]
    pub(super) name: String,
    #[prost(enumeration = "SpanKind", tag = "6")]
    pub(super) kind: i32,
    #[prost(fixed64, tag = "7")]
    pub(super) start_unix_ns: u64,
    #[prost(fixed64, tag = "8")]
    pub(super) end_unix_ns: u64,
    #[prost(message, repeated, tag = "9")]
    pub(super) attributes: Vec<KeyValue>,
    #[prost(message, optional, tag = "15")]
    pub(super) status: Option<Status>,
    #[prost(fixed32, tag = "16")]
    pub(super) flags: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, prost::Enumeration)]
#[repr(i32)]
pub(super) enum SpanKind {
    Unspecified = 0,
    Internal = 1,
    Server = 2,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct Status {
    #[prost(string, tag = "2")]
    pub(super) message: String,
    #[prost(enumeration = "SpanStatusCode", tag = "3")]
    pub(super) code: i32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, prost::Enumeration)]
#[repr(i32)]
pub(super) enum SpanStatusCode {
    Unset = 0,
    Ok = 1,
    Error = 2,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct KeyValue {
    #[prost(string, tag = "1")]
    pub(super) key: String,
    #[prost(message, optional, tag = "2")]
    pub(super) value: Option<AnyValue>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct AnyValue {
    #[prost(oneof = "Any", tags = "1, 3")]
    pub(super) value: Option<Any>,
}

#[derive(Clone, PartialEq, Oneof)]
pub(super) enum Any {
    #[prost(string, tag = "1")]
    Text(String),
    #[prost(int64, tag = "3")]
    Number(i64),
}

/// What comes back.
#[derive(Clone, PartialEq, Message)]
pub(super) struct Exported {
    #[prost(message, optional, tag = "1")]
    pub(super) partial: Option<Partial>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct Partial {
    #[prost(int64, tag = "1")]
    pub(super) rejected_spans: i64,
    #[prost(string, tag = "2")]
    pub(super) message: String,
}

impl KeyValue {
    pub(super) fn text(key: &str, text: impl Into<String>) -> KeyValue {
        KeyValue::new(key, Any::Text(text.into()))
    }

    pub(super) fn number(key: &str, number: u64) -> KeyValue {
        KeyValue::new(key, Any::Number(i64::try_from(number).unwrap_or(i64::MAX)))
    }

    fn new(key: &str, value: Any) -> KeyValue {
        KeyValue {
            key: key.to_owned(),
            value: Some(AnyValue { value: Some(value) }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What the official Python package (opentelemetry-proto 1.45.2) writes for the same.
    const OFFICIAL: &str = "0a99010a170a150a0c736572766963652e6e616d6512050a03686f62127e0a080a03686f\
        6212013112720a1001010101010101010101010101010101120802020202020202022208030303030303\
        03032a05474554202f30023905000000000000004100000000000000104a200a19687474702e72657370\
        6f6e73652e7374617475735f636f6465120318f6037a0712037768791802850101030000";

    #[test]
    fn bytes_are_those_of_the_official_package() {
        let span = Span {
            trace_id: vec![1; 16],
            span_id: vec![2; 8],
            parent_span_id: vec![3; 8],
            name: "GET /".to_owned(),
            kind: SpanKind::Server.into(),
            start_unix_ns: 5,
            end_unix_ns: 1 << 60,
            attributes: vec![KeyValue::number("http.response.status_code", 502)],
            status: Some(Status {
                message: "why".to_owned(),
                code: SpanStatusCode::Error.into(),
            }),
            flags: 0x301,
        };
        let export = Export {
            resource_spans: vec![ResourceSpans {
                resource: Some(Resource {
                    attributes: vec![KeyValue::text("service.name", "hob")],
                }),
                scope_spans: vec![ScopeSpans {
                    scope: Some(Scope {
                        name: "hob".to_owned(),
                        version: "1".to_owned(),
                    }),
                    spans: vec![span],
                }],
            }],
        };
        let written = export.encode_to_vec();
        let hex: String = written.iter().map(|byte| format!("{byte:02x}")).collect();
        assert_eq!(hex, OFFICIAL);
    }
}
