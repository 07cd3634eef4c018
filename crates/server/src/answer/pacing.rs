//! Answers that leave no faster than `bandwidth` lets them of the route that has answered in the
//! end.

use std::rc::Rc;
use std::sync::Arc;

use hob_http::{Answered, Request, Response};

use super::HandlerContext;
use crate::serve::sites::Sites;
use crate::step::bandwidth;

impl HandlerContext {
    /// The same answer, paced where its route says so.
    pub(super) fn pace(
        self: &Rc<HandlerContext>,
        sites: &Arc<Sites>,
        request: &Request,
        answered: Answered,
    ) -> Answered {
        match answered {
            Answered::Ready(response) => {
                Answered::Ready(self.pace_response(sites, request, response))
            }
            Answered::Later(future) => {
                let (desk, sites) = (Rc::clone(self), Arc::clone(sites));
                let request = request.clone();
                Answered::Later(Box::pin(async move {
                    let response = future.await;
                    desk.pace_response(&sites, &request, response)
                }))
            }
        }
    }

    fn pace_response(&self, sites: &Sites, request: &Request, response: Response) -> Response {
        let at = {
            let record = request.record();
            (u32::from(record.site), record.route)
        };
        let route = sites.route(at.0, at.1).map(|(_, route)| route);
        match route.and_then(|route| route.bandwidth.as_ref()) {
            Some(limit) => bandwidth::pace(limit, &self.counters, request, response),
            None => response,
        }
    }
}
