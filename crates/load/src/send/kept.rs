//! What is kept of an answer, where somebody wants to read it: some of its fields, and its body up
//! to a limit. Answers that are only counted keep nothing.

use crate::limits::DOCUMENT_BYTES_MAX;

/// The fields that are kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum KeptField {
    Age,
    CacheControl,
    ContentEncoding,
    ContentType,
    Date,
    Etag,
    Expires,
    LastModified,
    Location,
}

const NAMES: &[(&str, KeptField)] = &[
    ("age", KeptField::Age),
    ("cache-control", KeptField::CacheControl),
    ("content-encoding", KeptField::ContentEncoding),
    ("content-type", KeptField::ContentType),
    ("date", KeptField::Date),
    ("etag", KeptField::Etag),
    ("expires", KeptField::Expires),
    ("last-modified", KeptField::LastModified),
    ("location", KeptField::Location),
];

/// How much is wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Keep {
    Fields,
    Body,
}

/// What was kept of one answer.
#[derive(Debug, Clone, Default)]
pub struct Kept {
    fields: Vec<(KeptField, String)>,
    pub(crate) body: Vec<u8>,
    has_body: bool,
    /// The body was longer than the limit.
    pub(crate) is_cut: bool,
}

impl Kept {
    pub(crate) fn new(keep: Keep) -> Kept {
        Kept {
            has_body: keep == Keep::Body,
            ..Kept::default()
        }
    }

    /// The body must be looked at.
    pub(crate) fn wants_body(&self) -> bool {
        self.has_body
    }

    /// A head begins: an interim one may have come before.
    pub(crate) fn begin(&mut self) {
        self.fields.clear();
    }

    /// A field of the head.
    pub(crate) fn field(&mut self, name: &[u8], value: &[u8]) {
        let known = NAMES
            .iter()
            .find(|(known, _)| name.eq_ignore_ascii_case(known.as_bytes()));
        if let Some((_, name)) = known {
            let value = String::from_utf8_lossy(value.trim_ascii()).into_owned();
            self.fields.push((*name, value));
        }
    }

    /// Fields that were read elsewhere.
    pub(crate) fn set_fields(&mut self, fields: Vec<(KeptField, String)>) {
        self.fields = fields;
    }

    /// More of the body.
    pub(crate) fn data(&mut self, bytes: &[u8]) {
        if self.has_body {
            let room = DOCUMENT_BYTES_MAX - self.body.len();
            self.is_cut |= bytes.len() > room;
            self.body.extend_from_slice(&bytes[..bytes.len().min(room)]);
        }
    }

    /// The values of a field, joined as one. //= rfc9110#5.3
    pub(crate) fn get(&self, name: KeptField) -> Option<String> {
        let all = self.fields.iter().filter(|(own, _)| *own == name);
        let all: Vec<&str> = all.map(|(_, value)| value.as_str()).collect();
        (!all.is_empty()).then(|| all.join(", "))
    }
}

/// Which of the fields that are kept this is.
pub(crate) fn name_of(name: &[u8]) -> Option<KeptField> {
    let found = NAMES.iter().find(|(known, _)| known.as_bytes() == name);
    found.map(|(_, name)| *name)
}
