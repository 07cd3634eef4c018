//! Who may ask, how often, who it is, and which route answers: what such rules add to a file, in
//! hob and in nginx.

use super::row::RowRequest;
use super::{ComparisonRow, Entrant, RowGroup, Scope};
use crate::server::{ASKED_PATH, Extra, Installed, ServerSoftware};

/// Networks before those that clients are in.
const NETWORKS: u32 = 100;
/// Routes with conditions before the one that answers.
const CONDITIONS: u32 = 100;
/// Paths that have moved.
const MOVED: u32 = 100_000;

pub(super) fn rows(servers: &[Installed]) -> Vec<ComparisonRow> {
    let row = |id: &str, title: &str, advice: &'static str| {
        let id = format!("cost.{id}.clear.keep.0k.c10");
        let mut row = ComparisonRow::new(id, title.to_owned(), RowGroup::Cost, 10);
        row.scope = Scope::Usual;
        row.advice = advice.into();
        row
    };
    let each = |of: &dyn Fn(&Installed) -> Vec<Entrant>| {
        let asked = servers.iter().filter(is_asked);
        asked.flat_map(of).collect()
    };
    let mut rules = row(
        "rules",
        "rules of who may ask and how often, file of 0k",
        "both look an address up in a list and keep a time for each client; nginx's list is read \
         from its beginning",
    );
    rules.entrants = each(&entrants);
    let mut sign_in = row(
        "sign_in",
        "a name and a password with each request, file of 0k",
        "nginx hashes the password of each request, hob that of the first one and remembers it",
    );
    sign_in.request = RowRequest::SignedIn;
    sign_in.entrants = each(&|server| {
        vec![
            entrant(server, "nobody is asked", Extra::None),
            entrant(server, "who signs in (apr1)", Extra::SignIn),
        ]
    });
    let mut token = row(
        "token",
        "a token with each request, file of 0k",
        "hob verifies the signature of the first one and remembers it; nginx has tokens in its \
         commercial edition only",
    );
    token.request = RowRequest::Token;
    let hob = servers.iter().filter(|one| one.kind == ServerSoftware::Hob);
    token.entrants = hob
        .filter(is_asked)
        .flat_map(|server| {
            [
                entrant(server, "nobody is asked", Extra::None),
                entrant(server, "who has a token (ES256)", Extra::Token),
            ]
        })
        .collect();
    let mut forward = row(
        "forward",
        "a server is asked about each request, file of 0k",
        "both ask themselves, over a connection that is kept; the third figure is what that costs \
         alone",
    );
    forward.entrants = each(&|server| {
        vec![
            entrant(server, "nobody is asked", Extra::None),
            entrant(server, "a server is asked", Extra::Forward),
            Entrant {
                path: ASKED_PATH.to_owned(),
                ..entrant(server, "that server's answer", Extra::Forward)
            },
        ]
    });
    vec![rules, sign_in, token, forward]
}

fn is_asked(server: &&Installed) -> bool {
    server.name == "hob" || server.kind == ServerSoftware::Nginx
}

fn entrant(server: &Installed, what: &str, extra: Extra) -> Entrant {
    Entrant {
        label: format!("{}, {what}", server.name),
        server: server.name.clone(),
        extra,
        path: "/0k.txt".to_owned(),
        bytes: 0,
    }
}

fn entrants(server: &Installed) -> Vec<Entrant> {
    let mut all = vec![
        entrant(server, "no rules", Extra::None),
        entrant(server, "103 networks may ask", Extra::Allow(NETWORKS)),
        entrant(server, "a rate for each client", Extra::Rate),
        entrant(server, "so many at once of each client", Extra::AtOnce),
        Entrant {
            path: "/0k".to_owned(),
            ..entrant(server, "found by the second of two forms", Extra::Try)
        },
    ];
    if server.kind == ServerSoftware::Hob {
        all.extend([
            entrant(
                server,
                "100 routes with `when`",
                Extra::Conditions(CONDITIONS),
            ),
            entrant(server, "100,000 paths have moved", Extra::Moved(MOVED)),
        ]);
    }
    all
}
