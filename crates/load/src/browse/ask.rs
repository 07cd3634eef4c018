//! Requests as browsers write them: what they accept, and what they have already.

use super::unpack::ACCEPTED;
use super::visitor::AssetRequest;
use crate::measure::AssetKind;
use crate::plan::{BenchPlan, Protocol};
use crate::request::Fields;
use crate::send::{h2, h3};

/// Writes the requests of a run.
#[derive(Debug, Clone)]
pub(crate) struct Asker {
    protocol: Protocol,
    scheme: &'static str,
    host: String,
    /// The fields that were asked for; they take the place of a browser's.
    fields: Vec<(String, String)>,
}

impl Asker {
    /// For a plan whose fields were checked.
    pub(crate) fn new(plan: &BenchPlan) -> Asker {
        let is_host = |(name, _): &&(String, String)| name.eq_ignore_ascii_case("host");
        let host = plan.fields.iter().find(is_host);
        let url = &plan.entries[0].url;
        Asker {
            protocol: plan.protocol,
            scheme: if url.is_secure { "https" } else { "http" },
            host: host.map_or_else(|| url.authority.clone(), |(_, value)| value.clone()),
            fields: plan
                .fields
                .iter()
                .filter(|field| !is_host(field))
                .cloned()
                .collect(),
        }
    }

    /// A request as it goes out: for HTTP/1 whole, else its fields as the protocol packs them.
    pub(crate) fn head(&self, wanted: &AssetRequest) -> Vec<u8> {
        let fields = self.fields(wanted);
        if self.protocol == Protocol::H1 {
            let mut head = format!("GET {} HTTP/1.1\r\nHost: {}\r\n", wanted.target, self.host);
            for (name, value) in fields {
                head.push_str(&format!("{name}: {value}\r\n"));
            }
            head.push_str("\r\n");
            return head.into_bytes();
        }
        let mut all: Fields = [
            (":method", "GET"),
            (":scheme", self.scheme),
            (":authority", &self.host),
            (":path", &wanted.target),
        ]
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .to_vec();
        let lower = fields.into_iter();
        all.extend(lower.map(|(name, value)| (name.to_ascii_lowercase(), value)));
        match self.protocol {
            Protocol::H2 => h2::pack_alone(&all),
            _ => h3::pack_alone(&all),
        }
    }

    fn fields(&self, wanted: &AssetRequest) -> Fields {
        let mut fields: Fields = Vec::new();
        let mut put = |name: &str, value: &str| {
            let mut own = self.fields.iter();
            if !own.any(|(own, _)| own.eq_ignore_ascii_case(name)) {
                fields.push((name.to_owned(), value.to_owned()));
            }
        };
        put("Accept", wanted.kind.accept());
        put("Accept-Encoding", ACCEPTED);
        if matches!(wanted.kind, AssetKind::Document | AssetKind::Frame) {
            put("Upgrade-Insecure-Requests", "1");
        }
        if let Some(etag) = &wanted.etag {
            put("If-None-Match", etag);
        }
        if let Some(moment) = &wanted.last_modified {
            put("If-Modified-Since", moment);
        }
        fields.extend(self.fields.iter().cloned());
        fields
    }
}
