//! Field blocks among the frames: heads of answers, interim ones, trailers.

use crate::fields_coding::{ENTRY_BYTES, Field, RequestFieldName};
use crate::framing::read_decimal;
use crate::h2::client::conn::{Given, Http2Client, Http2ClientEvent, Http2StreamFault};
use crate::h2::client::stream::AnswerStage;
use crate::h2::conn::Http2ConnectionError;
use crate::h2::fields::{PartialFieldBlock, strip_padding};
use crate::h2::frame::{self, Header, Http2ErrorCode};
use crate::head::Fields;
use crate::limits::{ANSWER_FIELDS_MAX, ANSWER_INTERIM_MAX};
use crate::status::has_no_content;

/// The head of an answer.
#[derive(Debug, PartialEq, Eq)]
pub struct Http2AnswerHead {
    /// Status code, 200 to 599.
    pub status: u16,
    /// Its fields but for `content-length`, in lower case.
    pub fields: Fields,
    /// Size of the body, when announced.
    pub body_bytes: Option<u64>,
    /// There is nothing behind it.
    pub is_all: bool,
}

/// A block while its fields come.
struct AnswerBlock {
    status: Option<u16>,
    fields: Fields,
    field_count: usize,
    body_bytes: Option<u64>,
    list_bytes: usize,
    wrong: Option<&'static str>,
}

impl Http2Client {
    //= rfc9113#6.2
    pub(super) fn handle_headers(
        &mut self,
        header: Header,
        payload: &[u8],
        out: &mut Vec<u8>,
    ) -> Given {
        self.check_opened(header)?;
        let mut fragment = strip_padding(header, payload)?;
        if header.has(frame::WITH_PRIORITY) {
            fragment = fragment.get(5..).ok_or(Http2ConnectionError::size(
                "HEADERS has no room for its priority",
            ))?;
        }
        let ends = header.has(frame::END_STREAM);
        if header.has(frame::END_HEADERS) {
            return self.handle_block(header.stream, ends, fragment, out);
        }
        self.block = Some(Box::new(PartialFieldBlock::new(
            header.stream,
            ends,
            fragment,
        )));
        Ok(None)
    }

    pub(super) fn handle_continuation(
        &mut self,
        header: Header,
        payload: &[u8],
        out: &mut Vec<u8>,
    ) -> Given {
        let bytes_max = self.head_bytes_max;
        match PartialFieldBlock::go_on(&mut self.block, header, payload, bytes_max)? {
            Some(block) => self.handle_block(block.stream, block.ends, &block.bytes, out),
            None => Ok(None),
        }
    }

    fn handle_block(&mut self, id: u32, ends: bool, block: &[u8], out: &mut Vec<u8>) -> Given {
        let (head_bytes_max, mut bytes) = (self.head_bytes_max, Vec::new());
        let mut read = AnswerBlock::new();
        let decoded = self.decoder.decode(block, &mut bytes, |bytes, field| {
            read.take(bytes, field, head_bytes_max);
            bytes.clear();
        });
        decoded?;
        let Some(stream) = self.find(id) else {
            // It is over here, and the other side did not know.
            return Ok(None);
        };
        let taken = match stream.receiving {
            AnswerStage::Ended => Err("HEADERS after the end of the answer"),
            AnswerStage::Head => read.into_head(ends, stream.is_head_method),
            AnswerStage::Body(left) => read.into_trailers(ends, left),
        };
        let event = match taken {
            Ok(BlockMeaning::Interim(status, fields)) => {
                stream.interim_count += 1;
                if stream.interim_count <= ANSWER_INTERIM_MAX {
                    return Ok(Some(Http2ClientEvent::Interim(id, status, fields)));
                }
                Err("too many interim answers")
            }
            Ok(BlockMeaning::Head(head)) => {
                let has_none = stream.is_head_method || has_no_content(head.status);
                stream.receiving = AnswerStage::Body(match has_none {
                    true => Some(0),
                    false => head.body_bytes,
                });
                Ok(Http2ClientEvent::Head(id, head))
            }
            Ok(BlockMeaning::Trailers(fields)) => Ok(Http2ClientEvent::End(id, fields)),
            Err(wrong) => Err(wrong),
        };
        match event {
            Ok(event) => {
                if ends {
                    self.end_answer(id);
                }
                Ok(Some(event))
            }
            Err(wrong) => {
                self.reset(id, Http2ErrorCode::Protocol, out);
                let fault = Http2StreamFault::Malformed(wrong);
                Ok(Some(Http2ClientEvent::Broken(id, fault)))
            }
        }
    }
}

/// What a block is.
enum BlockMeaning {
    Interim(u16, Fields),
    Head(Http2AnswerHead),
    Trailers(Fields),
}

type Meant = Result<BlockMeaning, &'static str>;

impl AnswerBlock {
    fn new() -> AnswerBlock {
        AnswerBlock {
            status: None,
            fields: Fields::new(),
            field_count: 0,
            body_bytes: None,
            list_bytes: 0,
            wrong: None,
        }
    }

    fn take(&mut self, bytes: &[u8], field: Field, head_bytes_max: usize) {
        let (name, value) = field.texts(bytes);
        self.list_bytes += name.len() + value.len() + ENTRY_BYTES;
        let wrong = match () {
            () if self.wrong.is_some() => return,
            () if self.list_bytes > head_bytes_max => Some("the head is longer than `head`"),
            () if !field.has_lawful_value => Some("a field value has bytes it must not have"),
            () => self.sort(name, value, field.name),
        };
        self.wrong = wrong;
    }

    fn sort(
        &mut self,
        name: &[u8],
        value: &[u8],
        meaning: RequestFieldName,
    ) -> Option<&'static str> {
        match (name, meaning) {
            //= rfc9113#8.3.2
            (b":status", _) => {
                if self.status.is_some() || !self.fields.is_empty() {
                    return Some("a pseudo-header field comes twice, or after a field");
                }
                let status = read_decimal(value).ok().filter(|_| value.len() == 3);
                self.status = status.and_then(|status| u16::try_from(status).ok());
                let is_status = self
                    .status
                    .is_some_and(|status| (100..600).contains(&status));
                (!is_status).then_some("the status is no number from 100 to 599")
            }
            (b"content-length", _) => {
                let bytes = read_decimal(value).ok();
                let is_one = self.body_bytes.is_none_or(|known| Some(known) == bytes);
                self.body_bytes = bytes;
                (bytes.is_none() || !is_one).then_some("its framing can be read in two ways")
            }
            //= rfc9113#8.2.2
            (_, RequestFieldName::Field(_) | RequestFieldName::Te) => {
                self.field_count += 1;
                let has_room = self.field_count <= ANSWER_FIELDS_MAX;
                let is_added = has_room && self.fields.add(name, value);
                (!is_added).then_some("the head has too many fields, or a malformed one")
            }
            _ => Some("a field name is malformed, or speaks of the connection"),
        }
    }

    fn into_head(self, is_all: bool, is_head_method: bool) -> Meant {
        if let Some(wrong) = self.wrong {
            return Err(wrong);
        }
        let Some(status) = self.status else {
            return Err("there is no :status");
        };
        match status {
            //= rfc9113#8.6
            101 => Err("status 101, which HTTP/2 has not"),
            ..200 if is_all => Err("an interim answer ends the stream"),
            ..200 => Ok(BlockMeaning::Interim(status, self.fields)),
            _ => {
                let has_none = is_head_method || has_no_content(status);
                //= rfc9113#8.1.1
                if is_all && !has_none && self.body_bytes.is_some_and(|bytes| bytes > 0) {
                    return Err("the announced body does not come");
                }
                Ok(BlockMeaning::Head(Http2AnswerHead {
                    status,
                    fields: self.fields,
                    body_bytes: self.body_bytes,
                    is_all,
                }))
            }
        }
    }

    fn into_trailers(self, ends: bool, left: Option<u64>) -> Meant {
        match (self.wrong, left) {
            (Some(wrong), _) => Err(wrong),
            _ if self.status.is_some() => Err("there is a second head"),
            _ if !ends => Err("trailers do not end the answer"),
            (_, Some(1..)) => Err("the body has not the size that was announced"),
            _ => Ok(BlockMeaning::Trailers(self.fields)),
        }
    }
}
