//! A request as its program gets it. What a program is told alike in every request of a connection
//! is made once, and copied.

use std::cell::RefCell;
use std::net::SocketAddr;

use hob_http::Request;
use hob_ipc::request::{BlockBuilder, UnfitRequest};

use crate::handle::resident::Resident;
use crate::handle::resident::answer::OwnVariables;
use crate::handle::resident::fail::ResidentFailure;
use crate::handle::resident::limits::{BEGINNINGS_KEPT, BLOCK_BYTES_KEPT, BLOCKS_KEPT};
use crate::handle::script::variables::{self, ProgramRequest, SLASH_IN_A_NAME, VariableSink};
use crate::route::target::{told, told_as};

/// How the blocks of one connection for one program begin.
struct Beginning {
    connection: u64,
    /// Where the client is: over HTTP/3 it may move.
    peer: Option<SocketAddr>,
    is_secure: bool,
    resident: u64,
    block: BlockBuilder,
}

thread_local! {
    /// Of the connections of this thread, each in a place that its number gives.
    static BEGINNINGS: RefCell<Vec<Option<Beginning>>> = const { RefCell::new(Vec::new()) };
    /// Buffers of blocks whose requests are over.
    static SPARE: RefCell<Vec<Vec<u8>>> = const { RefCell::new(Vec::new()) };
}

/// Variables on their way into a block.
struct BlockWriter {
    block: BlockBuilder,
    /// What was wrong first.
    outcome: Result<(), UnfitRequest>,
}

impl BlockWriter {
    fn new(block: BlockBuilder) -> BlockWriter {
        BlockWriter {
            block,
            outcome: Ok(()),
        }
    }

    fn finish(self) -> Result<Vec<u8>, UnfitRequest> {
        self.outcome?;
        self.block.finish()
    }
}

impl VariableSink for BlockWriter {
    fn add(&mut self, name: impl FnOnce(&mut Vec<u8>), value: impl FnOnce(&mut Vec<u8>) -> bool) {
        if self.outcome.is_ok() {
            self.outcome = self.block.write(name, value);
        }
    }
}

/// A buffer for a block: one whose request is over, or a new one.
fn spare() -> Vec<u8> {
    SPARE.with_borrow_mut(Vec::pop).unwrap_or_default()
}

/// Keeps the buffer of a block for the next one of this thread.
pub(super) fn keep(block: Vec<u8>) {
    if block.capacity() <= BLOCK_BYTES_KEPT {
        // A thread that ends has no place for it any more.
        let _ = SPARE.try_with(|spare| {
            let mut spare = spare.borrow_mut();
            if spare.len() < BLOCKS_KEPT {
                spare.push(block);
            }
        });
    }
}

impl Resident {
    /// The variables of a request.
    pub(super) fn block(
        &self,
        request: &Request,
        body_bytes: Option<u64>,
        (path, below): (&[u8], usize),
        own: &OwnVariables,
    ) -> Result<Vec<u8>, ResidentFailure> {
        let (name, path_info) = self.split(request, path, below);
        let path_info = match self.finds_scripts {
            false => told(path_info),
            // It must not take what is no separator for one.
            true => told_as(path_info, SLASH_IN_A_NAME),
        };
        let asked = ProgramRequest {
            request,
            body_bytes,
            script: variables::ScriptLocation {
                name: &name,
                path_info: &path_info,
                file: &self.file,
                document_root: &self.document_root,
            },
            passes_authorization: self.settings.pass_authorization,
            may_tunnel: self.may_tunnel(),
        };
        let mut written = BlockWriter::new(self.begin(&asked).map_err(failure)?);
        variables::write_passing(&asked, &mut written);
        for (name, value) in own {
            let put = |out: &mut Vec<u8>, text: &[u8]| out.extend_from_slice(text);
            written.add(
                |out| put(out, name),
                |out| {
                    put(out, value);
                    true
                },
            );
        }
        written.finish().map_err(failure)
    }

    fn begin(&self, asked: &ProgramRequest<'_>) -> Result<BlockBuilder, UnfitRequest> {
        let facts = asked.request.facts();
        let (connection, peer, is_secure) = (facts.number, facts.peer, facts.is_secure());
        // Another machine's connection has requests of all its clients.
        let told = facts.told.as_ref();
        if told.is_some_and(|told| told.variables.is_some()) {
            let mut written = BlockWriter::new(BlockBuilder::new(None));
            variables::write_lasting(asked, &mut written);
            written.outcome?;
            return Ok(written.block.begin_like(spare(), asked.body_bytes));
        }
        BEGINNINGS.with_borrow_mut(|beginnings| {
            beginnings.resize_with(BEGINNINGS_KEPT, || None);
            let place = &mut beginnings[connection as usize % BEGINNINGS_KEPT];
            let is_it = |kept: &&Beginning| {
                kept.connection == connection
                    && kept.resident == self.number
                    && (kept.peer, kept.is_secure) == (peer, is_secure)
            };
            if let Some(kept) = place.as_ref().filter(is_it) {
                return Ok(kept.block.begin_like(spare(), asked.body_bytes));
            }
            let mut written = BlockWriter::new(BlockBuilder::new(None));
            variables::write_lasting(asked, &mut written);
            written.outcome?;
            let block = written.block;
            let begun = block.begin_like(spare(), asked.body_bytes);
            *place = Some(Beginning {
                connection,
                peer,
                is_secure,
                resident: self.number,
                block,
            });
            Ok(begun)
        })
    }
}

fn failure(unfit: UnfitRequest) -> ResidentFailure {
    match unfit {
        UnfitRequest::TooLong => ResidentFailure::TooLong,
        UnfitRequest::Nul => ResidentFailure::Unpassable(
            "the request holds a NUL byte, which no program can be passed",
        ),
    }
}
