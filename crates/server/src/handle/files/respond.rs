//! From a cache entry to an answer: coding, conditions, ranges.

use std::collections::VecDeque;
use std::hash::BuildHasher;
use std::rc::Rc;
use std::sync::OnceLock;
use std::task::{Context, Poll};

use bytes::Bytes;
use hob_http::{
    Body, BodyError, BodyStream, Chunk, Fields, Known, PreparedHead, Request, RequestHead, Response,
};
use hob_trace::Protocol;

use crate::cache::disk_threads::DiskThreads;
use crate::cache::entry::{CachedFile, Representation, Stamp};
use crate::cache::local::CachedFileView;
use crate::handle::config::Coding;
use crate::handle::files::Files;
use crate::handle::files::source::{file_body, read_at_once};
use crate::handle::plain;
use crate::step::conditional::{
    self, ConditionalMethod, Conditions, PreconditionOutcome, Validators,
};
use crate::step::headers;
use crate::step::negotiate::{self, Negotiated};
use crate::step::range::{self, ByteRange, Multipart, PartPlace, Selection};

/// What a request gets from an entry.
pub enum Choice {
    /// This coding; `None` is the file as it is.
    Send(Option<Coding>),
    /// This coding, which must be made first.
    Make(Coding),
    /// Nothing the client accepts (406).
    NotAcceptable,
}

/// Chooses the representation.
pub fn choose(files: &Files, entry: &CachedFile, head: &RequestHead) -> Choice {
    if !entry.varies {
        return Choice::Send(None);
    }
    if head.value(Known::AcceptEncoding).is_none() {
        return Choice::Send(None);
    }
    let accept = head.joined(Known::AcceptEncoding);
    let mut available = Vec::with_capacity(4);
    let stored = entry.stored.iter().filter_map(|one| one.coding);
    let made = files
        .settings
        .compress
        .iter()
        .copied()
        .filter(|_| entry.may_compress);
    for coding in stored.chain(made) {
        if !available.contains(&coding) {
            available.push(coding);
        }
    }
    match negotiate::coding(accept.as_deref(), &available) {
        Negotiated::Identity => Choice::Send(None),
        Negotiated::NotAcceptable => Choice::NotAcceptable,
        Negotiated::Coded(coding) if entry.coded(coding).is_some() => Choice::Send(Some(coding)),
        // While another request has it made, or when it is not smaller, the file goes as it is.
        Negotiated::Coded(coding) if entry.begin_making(coding) => Choice::Make(coding),
        Negotiated::Coded(_) => Choice::Send(None),
    }
}

/// Answers with a representation.
pub fn respond(
    files: &Files,
    view: &Rc<CachedFileView>,
    coding: Option<Coding>,
    request: &Request,
    pool: &DiskThreads,
) -> Response {
    let entry = &view.entry;
    let one = entry.representation(coding);
    let head = request.head();
    match verdict(entry, one, request) {
        PreconditionOutcome::NotModified => {
            Response::new(304, bare_fields(files, entry, one), Body::Empty)
        }
        PreconditionOutcome::PreconditionFailed => plain::error(412),
        PreconditionOutcome::IgnoreRange => whole(files, view, one, request, pool),
        PreconditionOutcome::Proceed => match head.value(Known::Range) {
            Some(wanted) if head.method() == b"GET" && !head.is_repeated(Known::Range) => {
                ranges(files, view, one, request, pool, wanted)
            }
            _ => whole(files, view, one, request, pool),
        },
    }
}

/// What the request's conditions come to; most requests have none.
fn verdict(entry: &CachedFile, one: &Representation, request: &Request) -> PreconditionOutcome {
    const CONDITIONS: [Known; 5] = [
        Known::IfMatch,
        Known::IfNoneMatch,
        Known::IfModifiedSince,
        Known::IfUnmodifiedSince,
        Known::IfRange,
    ];
    let head = request.head();
    if CONDITIONS.iter().all(|&known| head.value(known).is_none()) {
        return PreconditionOutcome::Proceed;
    }
    let if_match = head.joined(Known::IfMatch);
    let if_none_match = head.joined(Known::IfNoneMatch);
    let conditions = Conditions {
        if_match: if_match.as_deref(),
        if_none_match: if_none_match.as_deref(),
        if_modified_since: head.value(Known::IfModifiedSince),
        if_unmodified_since: head.value(Known::IfUnmodifiedSince),
        if_range: head.value(Known::IfRange),
        range: head.value(Known::Range),
    };
    let current = Validators {
        entity_tag: Some(one.entity_tag.as_bytes()),
        modified: Some(entry.modified_secs as i64),
        modified_text: Some(&entry.modified_text),
    };
    let method = if head.method() == b"HEAD" {
        ConditionalMethod::Head
    } else {
        ConditionalMethod::Get
    };
    let now = (request.record().started_unix_ms / 1000) as i64;
    conditional::evaluate(method, &conditions, &current, now)
}

/// 200 with everything.
fn whole(
    files: &Files,
    view: &Rc<CachedFileView>,
    one: &Representation,
    request: &Request,
    pool: &DiskThreads,
) -> Response {
    let index = one.coding.map_or(0, |coding| 1 + coding as usize);
    let prepared = view.heads[index].get_or_init(|| {
        let head = one.head.get_or_init(|| {
            let mut fields = fields(files, &view.entry, one);
            headers::apply(&files.headers, &mut fields);
            PreparedHead::new(200, fields, one.len)
        });
        Rc::new(head.clone())
    });
    Response::prepared(Rc::clone(prepared), body(one, 0, one.len, request, pool))
}

fn body(
    one: &Representation,
    offset: u64,
    len: u64,
    request: &Request,
    pool: &DiskThreads,
) -> Body {
    if len == 0 {
        return Body::Empty;
    }
    match chunk(one, offset, len, request, pool) {
        Some(Chunk::Bytes(bytes)) => Body::Bytes(bytes),
        Some(Chunk::File(file)) => Body::File(file),
        Some(Chunk::Region(region)) => Body::Region(region),
        Some(Chunk::HalfClose) | None => Body::Empty,
    }
}

fn chunk(
    one: &Representation,
    offset: u64,
    len: u64,
    request: &Request,
    pool: &DiskThreads,
) -> Option<Chunk> {
    let slice = |bytes: &Bytes| bytes.slice(offset as usize..(offset + len) as usize);
    if let Some(content) = &one.content {
        return Some(Chunk::Bytes(slice(content)));
    }
    let file = one.file.as_ref()?;
    if let Some(bytes) = read_at_once(file, offset, len) {
        return Some(Chunk::Bytes(bytes));
    }
    Some(match file.copy() {
        Some(copy) if !can_sendfile(request) => Chunk::Bytes(slice(copy)),
        _ => Chunk::File(file_body(file, pool, request, offset, len)),
    })
}

/// Clear text of HTTP/1: the kernel sends files by itself.
pub fn can_sendfile(request: &Request) -> bool {
    let protocol = request.record().protocol;
    request.facts().tls.is_none() && matches!(protocol, Protocol::Http10 | Protocol::Http11)
}

fn ranges(
    files: &Files,
    view: &Rc<CachedFileView>,
    one: &Representation,
    request: &Request,
    pool: &DiskThreads,
    wanted: &[u8],
) -> Response {
    match range::select(wanted, one.len) {
        Selection::Whole => whole(files, view, one, request, pool),
        Selection::Unsatisfiable => {
            let mut response = plain::error(416);
            let mut text = Vec::new();
            range::write_unsatisfied(one.len, &mut text);
            response.fields_mut().add(b"Content-Range", &text);
            response
        }
        Selection::One(part) => {
            let mut fields = fields(files, &view.entry, one);
            let mut text = Vec::new();
            part.write_content_range(one.len, &mut text);
            fields.add(b"Content-Range", &text);
            Response::new(
                206,
                fields,
                body(one, part.start, part.len(), request, pool),
            )
        }
        Selection::Many(parts) => several(files, view, one, request, pool, &parts),
    }
}

/// 206 with several parts.
//= rfc9110#14.6
fn several(
    files: &Files,
    view: &Rc<CachedFileView>,
    one: &Representation,
    request: &Request,
    pool: &DiskThreads,
    wanted: &[ByteRange],
) -> Response {
    // Nobody who could choose the file's content can foresee this number.
    let number = {
        let record = request.record();
        let seen = (record.started_us, record.connection, record.request);
        foldhash::fast::RandomState::default().hash_one(seen)
    };
    let border = Multipart::new(number, view.entry.media_type.as_bytes(), one.len);
    let mut parts = VecDeque::new();
    for (index, &part) in wanted.iter().enumerate() {
        let mut text = Vec::new();
        border.write_part_head(part, PartPlace::of_index(index), &mut text);
        parts.push_back(Chunk::Bytes(text.into()));
        parts.extend(chunk(one, part.start, part.len(), request, pool));
    }
    let mut text = Vec::new();
    border.write_end(&mut text);
    parts.push_back(Chunk::Bytes(text.into()));
    let mut fields = fields(files, &view.entry, one);
    let mut content_type = Vec::new();
    border.write_content_type(&mut content_type);
    fields.set(b"Content-Type", &content_type);
    Response::new(
        206,
        fields,
        Body::Stream(Box::new(MultiRangeBody { parts })),
    )
}

/// Pieces one after the other.
struct MultiRangeBody {
    parts: VecDeque<Chunk>,
}

impl BodyStream for MultiRangeBody {
    fn poll_chunk(
        &mut self,
        _: &mut Context<'_>,
        _: usize,
    ) -> Poll<Option<Result<Chunk, BodyError>>> {
        Poll::Ready(self.parts.pop_front().map(Ok))
    }

    fn len(&self) -> Option<u64> {
        Some(self.parts.iter().map(Chunk::len).sum())
    }
}

/// All fields of a 200.
fn fields(files: &Files, entry: &CachedFile, one: &Representation) -> Fields {
    let mut fields = Fields::new();
    fields.add(b"Server", plain::SERVER);
    fields.add(b"Content-Type", entry.media_type.as_bytes());
    fields.add(b"Last-Modified", &entry.modified_text);
    fields.add(b"ETag", one.entity_tag.as_bytes());
    fields.add(b"Accept-Ranges", b"bytes");
    if let Some(coding) = one.coding {
        fields.add(
            b"Content-Encoding",
            negotiate::coding_name(coding).as_bytes(),
        );
    }
    add_common(files, entry, &mut fields);
    fields
}

/// The fields of a 304: what a cache needs to update what it has.
//= rfc9110#15.4.5
fn bare_fields(files: &Files, entry: &CachedFile, one: &Representation) -> Fields {
    let mut fields = Fields::new();
    fields.add(b"Server", plain::SERVER);
    fields.add(b"Last-Modified", &entry.modified_text);
    fields.add(b"ETag", one.entity_tag.as_bytes());
    add_common(files, entry, &mut fields);
    fields
}

fn add_common(files: &Files, entry: &CachedFile, fields: &mut Fields) {
    if entry.varies {
        fields.add(b"Vary", b"Accept-Encoding");
    }
    if !files.settings.cache_control.is_empty() {
        fields.add(b"Cache-Control", files.settings.cache_control.as_bytes());
    }
}

/// A representation made on the fly from the whole content.
pub fn made(
    content: &[u8],
    coding: Coding,
    (stamp, entity_tag): (Stamp, Box<str>),
) -> std::io::Result<Option<Representation>> {
    let level = crate::step::compress::default_level(coding);
    let Some(bytes) = crate::step::compress::compress(content, coding, level)? else {
        return Ok(None);
    };
    Ok(Some(Representation {
        coding: Some(coding),
        stamp,
        len: bytes.len() as u64,
        entity_tag,
        content: Some(Bytes::from(bytes)),
        file: None,
        head: OnceLock::new(),
    }))
}
