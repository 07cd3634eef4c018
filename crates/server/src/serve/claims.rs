//! Which paths of a site are answered by their own routes alone, and which route is a path's own.

use std::sync::Arc;

use hob_config::{AccessRules, SignInRule};
use hob_http::Request;

use crate::route::table::{RouteAnswer, RouteMatch, RouteTable};
use crate::serve::concurrency::ConcurrencyLimit;
use crate::serve::sites::ServedRoute;
use crate::step::rate::RateLimit;
use crate::step::when::{AskedRoute, RouteConditions};

/// Paths of a site that only their own routes answer: a program does, whose file is never sent, or
/// others may ask than elsewhere, or not as often. That holds also when what stands there is found
/// by another path, as a folder's index or a fallback. A path's own route is the one that the same
/// request would come to if it asked for that path: one whose `when` does not hold claims nothing
/// of it, and whoever asked there would not come to its rules either.
pub struct Claims {
    table: Arc<RouteTable>,
    conditions: Option<Arc<RouteConditions>>,
    /// By the routes' indexes.
    routes: Vec<RouteClaim>,
}

/// What makes a route the only one to answer its paths.
struct RouteClaim {
    runs_programs: bool,
    access: Option<Arc<AccessRules>>,
    rate: Option<Arc<RateLimit>>,
    concurrency: Option<Arc<ConcurrencyLimit>>,
    require: Option<Arc<SignInRule>>,
}

impl Claims {
    pub(super) fn of(
        table: &Arc<RouteTable>,
        conditions: Option<&Arc<RouteConditions>>,
        routes: &[ServedRoute],
    ) -> Option<Arc<Claims>> {
        let claims = routes.iter().map(|route| RouteClaim {
            runs_programs: route.handler.runs_programs(),
            access: route.access.clone(),
            rate: route.rate.clone(),
            concurrency: route.concurrency.clone(),
            require: route.require.clone(),
        });
        let claims = Claims {
            table: Arc::clone(table),
            conditions: conditions.cloned(),
            routes: claims.collect(),
        };
        let first = claims.routes.first()?;
        let mut all = claims.routes.iter();
        let is_any = all.any(|claim| claim.holds_before(first) || first.holds_before(claim));
        is_any.then(|| Arc::new(claims))
    }

    /// True when not the route with this index has to answer this normal path, but its own.
    pub fn is_of_another(&self, path: &[u8], index: u32, request: &Request) -> bool {
        let found = find(&self.table, self.conditions.as_deref(), path, request);
        let claim = |index: u32| self.routes.get(index as usize);
        let pair = found.and_then(|found| Some((claim(found.route)?, claim(index)?)));
        pair.is_some_and(|(own, asked)| own.holds_before(asked))
    }
}

impl RouteClaim {
    /// It runs a program, or has rules that the other one has not: those of their site are shared.
    fn holds_before(&self, other: &RouteClaim) -> bool {
        self.runs_programs
            || is_more(self.access.as_ref(), other.access.as_ref())
            || is_more(self.rate.as_ref(), other.rate.as_ref())
            || is_more(self.concurrency.as_ref(), other.concurrency.as_ref())
            || is_more(self.require.as_ref(), other.require.as_ref())
    }
}

/// The first route for a normal path that answers the request. Without conditions the table alone
/// decides.
#[inline]
pub(super) fn find(
    table: &RouteTable,
    conditions: Option<&RouteConditions>,
    path: &[u8],
    request: &Request,
) -> Option<RouteMatch> {
    let Some(conditions) = conditions else {
        return table.find(path);
    };
    let asked = AskedRoute::of(request);
    table.find_where(path, |route| conditions.answer(route, &asked))
}

/// The first route behind this one for a normal path that answers the request.
pub(super) fn find_behind(
    (table, conditions): (&RouteTable, Option<&RouteConditions>),
    (path, before): (&[u8], u32),
    request: &Request,
) -> Option<RouteMatch> {
    let asked = AskedRoute::of(request);
    table.find_where(path, |route| match conditions {
        _ if route <= before => RouteAnswer::No(table.next(route)),
        Some(conditions) => conditions.answer(route, &asked),
        None => RouteAnswer::Yes,
    })
}

fn is_more<T>(own: Option<&Arc<T>>, other: Option<&Arc<T>>) -> bool {
    own.is_some_and(|own| !other.is_some_and(|other| Arc::ptr_eq(own, other)))
}
