//! A request on a route: which file it is for, and what else the site has for its path.

use std::sync::Arc;

use hob_http::{Answered, Request};

use crate::handle::AnswersRoute;
use crate::handle::files::Files;
use crate::handle::files::find::{self, FileRequest, Others};
use crate::serve::context::{HandlerContext, OnRoute};
use crate::serve::sites::Slashes;

impl AnswersRoute for Files {
    fn answer(self: &Arc<Files>, on: &OnRoute<'_>) -> Answered {
        match &self.captured {
            None => self.answer_from_root(on),
            Some(captured) => self.answer_from(captured, on),
        }
    }
}

impl Files {
    /// A file below the root there is.
    pub(super) fn answer_from_root(self: &Arc<Files>, on: &OnRoute<'_>) -> Answered {
        let site = on.site;
        let (others, below) = Others::on(self, (site, on.route), on.path, on.below);
        let path = on.path.get(below..).unwrap_or_default();
        let slashes = site.slashes.as_ref();
        on.desk.file(self, on.request, path, others, slashes)
    }
}

impl HandlerContext {
    /// A file below a handler's root.
    pub(crate) fn file(
        &self,
        files: &Arc<Files>,
        request: &Request,
        path: &[u8],
        others: Option<Others<'_>>,
        slashes: Option<&Arc<Slashes>>,
    ) -> Answered {
        let ask = FileRequest {
            files,
            request,
            shared: &self.shared,
            counters: &self.counters,
            now_ms: self.now_ms.get(),
            others,
            slashes,
        };
        let (mut local, mut key) = (self.local.borrow_mut(), self.key.borrow_mut());
        find::answer(&ask, path, &mut local, &mut key)
    }
}
