//! A request as its program gets it. What a program is told alike in every request of a connection
//! is made once, and copied.

use std::cell::RefCell;

use hob_http::Request;
use hob_ipc::request::{BlockBuilder, Unfit};

use crate::handle::resident::Resident;
use crate::handle::resident::fail::Failure;
use crate::handle::resident::limits::BEGINNINGS_KEPT;
use crate::handle::variables::{self, Asked};

/// How the blocks of one connection for one program begin.
struct Beginning {
    connection: u64,
    resident: u64,
    block: BlockBuilder,
}

thread_local! {
    /// Of the connections of this thread, each in a place that its number gives.
    static BEGINNINGS: RefCell<Vec<Option<Beginning>>> = const { RefCell::new(Vec::new()) };
}

impl Resident {
    /// The variables of a request.
    pub(super) fn block(
        &self,
        request: &Request,
        body_bytes: Option<u64>,
        path: &[u8],
        below: usize,
    ) -> Result<Vec<u8>, Failure> {
        let (name, path_info) = self.split(path, below);
        let asked = Asked {
            request,
            body_bytes,
            script: variables::Script {
                name,
                path_info,
                file: &self.file,
                document_root: &self.document_root,
            },
            passes_authorization: self.settings.pass_authorization,
            may_tunnel: self.may_tunnel(),
        };
        let mut block = self.begin(&asked).map_err(failure)?;
        let mut outcome = Ok(());
        variables::each_passing(&asked, |name, value| {
            if outcome.is_ok() {
                outcome = block.push(name, value);
            }
        });
        outcome.map_err(failure)?;
        Ok(block.finish())
    }

    fn begin(&self, asked: &Asked<'_>) -> Result<BlockBuilder, Unfit> {
        let connection = asked.request.facts().number;
        BEGINNINGS.with_borrow_mut(|beginnings| {
            beginnings.resize_with(BEGINNINGS_KEPT, || None);
            let place = &mut beginnings[connection as usize % BEGINNINGS_KEPT];
            let is_it =
                |kept: &&Beginning| kept.connection == connection && kept.resident == self.number;
            if let Some(kept) = place.as_ref().filter(is_it) {
                return Ok(kept.block.begin_like(asked.body_bytes));
            }
            let mut block = BlockBuilder::new(None);
            let mut outcome = Ok(());
            variables::each_lasting(asked, |name, value| {
                if outcome.is_ok() {
                    outcome = block.push(name, value);
                }
            });
            outcome?;
            let begun = block.begin_like(asked.body_bytes);
            *place = Some(Beginning {
                connection,
                resident: self.number,
                block,
            });
            Ok(begun)
        })
    }
}

fn failure(unfit: Unfit) -> Failure {
    match unfit {
        Unfit::TooLong => Failure::TooLong,
        Unfit::Nul => {
            Failure::Unpassable("the request holds a NUL byte, which no program can be passed")
        }
    }
}
