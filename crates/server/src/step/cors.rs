//! Pages elsewhere: whether they may send a request and read its answer, told to their browsers
//! (Fetch standard, section 3.2).

use std::sync::Arc;

use hob_config::{CorsSettings, OriginRule};
use hob_http::{Answered, Fields, Request, Response};

/// What a browser is told that asks first whether a page elsewhere may send a request; `None` for
/// any other request.
pub fn preflight(cors: &CorsSettings, request: &Request) -> Option<Fields> {
    let head = request.head();
    if head.method() != b"OPTIONS" {
        return None;
    }
    head.values(b"access-control-request-method").next()?;
    let origin = head.values(b"origin").next()?;
    let mut fields = Fields::new();
    if tell_origin(cors, Some(origin), &mut fields) {
        let methods = cors.methods.join(", ");
        fields.add(b"Access-Control-Allow-Methods", methods.as_bytes());
        let asked = head.values(b"access-control-request-headers").next();
        match (cors.headers.iter().any(|name| name == "*"), asked) {
            (true, Some(asked)) => {
                fields.add(b"Access-Control-Allow-Headers", asked);
            }
            (false, _) if !cors.headers.is_empty() => {
                let names = cors.headers.join(", ");
                fields.add(b"Access-Control-Allow-Headers", names.as_bytes());
            }
            _ => {}
        }
        let seconds = cors.max_age.as_secs().to_string();
        fields.add(b"Access-Control-Max-Age", seconds.as_bytes());
    }
    Some(fields)
}

/// The same answer with what its page's browser is told.
pub fn tell(cors: &Arc<CorsSettings>, request: &Request, answered: Answered) -> Answered {
    match answered {
        Answered::Ready(response) => Answered::Ready(with_fields(cors, request, response)),
        Answered::Later(future) => {
            let (cors, request) = (Arc::clone(cors), request.clone());
            Answered::Later(Box::pin(async move {
                let response = future.await;
                with_fields(&cors, &request, response)
            }))
        }
    }
}

/// Whether pages of the request's origin may read the answer; `None` where it has none.
pub fn may_read(cors: &CorsSettings, request: &Request) -> Option<bool> {
    let origin = request.head().values(b"origin").next()?;
    Some(cors.origins.iter().any(|rule| rule.has(origin)))
}

fn with_fields(cors: &CorsSettings, request: &Request, mut response: Response) -> Response {
    let origin = request.head().values(b"origin").next();
    let fields = response.fields_mut();
    // Two of one would be none to a browser: here the config has the word, not a program.
    let is_of_cors = |name: &[u8]| {
        let begin = name.get(..b"access-control-".len());
        begin.is_some_and(|begin| begin.eq_ignore_ascii_case(b"access-control-"))
    };
    fields.retain(|name, _| !is_of_cors(name));
    if tell_origin(cors, origin, fields) && !cors.expose.is_empty() {
        let names = cors.expose.join(", ");
        fields.set(b"Access-Control-Expose-Headers", names.as_bytes());
    }
    response
}

/// True for an origin whose pages may.
fn tell_origin(cors: &CorsSettings, origin: Option<&[u8]>, fields: &mut Fields) -> bool {
    if cors.origins.contains(&OriginRule::Any) {
        fields.add(b"Access-Control-Allow-Origin", b"*");
        return origin.is_some();
    }
    // Who keeps the answer for others must not tell them of another's origin, or of none.
    fields.add(b"Vary", b"Origin");
    let Some(origin) = origin.filter(|origin| cors.origins.iter().any(|rule| rule.has(origin)))
    else {
        return false;
    };
    fields.add(b"Access-Control-Allow-Origin", origin);
    if cors.credentials {
        fields.add(b"Access-Control-Allow-Credentials", b"true");
    }
    true
}
