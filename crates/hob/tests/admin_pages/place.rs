//! A server with admin pages, and visitors of them.

use serde_json::{Value, json};

use crate::harness::client::{Answer, Connection};
use crate::harness::{Hob, Place, config};

/// A hash of `kettle`, cheap to check.
pub(crate) const KETTLE: &str = concat!(
    "$argon2id$v=19$m=64,t=1,p=1$c29tZXNhbHRzb21lc2FsdA$",
    "eWyzJ+jQbIGLIsexKTS96aHPoh46bPZb+Fz/AzMuStc"
);

/// `[admin]` on a free port, with these keys.
pub(crate) fn admin(keys: &str) -> String {
    format!("[admin]\naddress = \"127.0.0.1:0\"\n{keys}\n")
}

/// A server whose config has these keys of `[admin]`, and this before all tables.
pub(crate) fn serve(place: &Place, first: &str, keys: &str) -> Hob {
    place.serve_text(&format!("{}\n{}", config(first, "site"), admin(keys)))
}

/// Its admin pages.
pub(crate) struct Pages {
    pub(crate) port: u16,
    /// The token that was printed at the start.
    pub(crate) token: String,
}

impl Pages {
    pub(crate) fn of(hob: &Hob) -> Pages {
        let line = hob.wait_for("admin pages on http://127.0.0.1:");
        let (before, token) = line.split_once("/#token=").unwrap();
        Pages {
            port: before.rsplit(':').next().unwrap().parse().unwrap(),
            token: token.to_owned(),
        }
    }

    /// The origin of the pages.
    pub(crate) fn origin(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    /// A request with exactly these fields, and its answer.
    pub(crate) fn raw(&self, method: &str, target: &str, fields: &str, body: &str) -> Answer {
        let mut connection = Connection::open(self.port).unwrap();
        let length = body.len();
        let head = format!(
            "{method} {target} HTTP/1.1\r\n{fields}Content-Length: {length}\r\n\
             Connection: close\r\n\r\n{body}"
        );
        connection.send(head.as_bytes()).unwrap();
        connection.read_last(method)
    }

    /// The fields of a request that the pages themselves make.
    pub(crate) fn own_fields(&self) -> String {
        format!(
            "Host: 127.0.0.1:{}\r\nOrigin: {}\r\nX-Hob-Admin: 1\r\n",
            self.port,
            self.origin()
        )
    }

    /// Tries to log in.
    pub(crate) fn log_in(&self, body: &Value) -> Answer {
        self.raw("POST", "/v1/login", &self.own_fields(), &body.to_string())
    }

    /// Logs in with the printed token.
    pub(crate) fn operator(&self) -> Visitor<'_> {
        self.visitor(&json!({ "token": self.token }))
    }

    /// Logs in, which must work.
    pub(crate) fn visitor(&self, body: &Value) -> Visitor<'_> {
        let answer = self.log_in(body);
        assert_eq!(answer.status, 200, "{answer:?}");
        let cookie = answer.header("set-cookie").unwrap();
        let (cookie, _) = cookie.split_once(';').unwrap();
        Visitor {
            pages: self,
            cookie: cookie.to_owned(),
        }
    }
}

/// Someone who is logged in.
pub(crate) struct Visitor<'p> {
    pub(crate) pages: &'p Pages,
    pub(crate) cookie: String,
}

impl Visitor<'_> {
    pub(crate) fn get(&self, target: &str) -> Answer {
        let fields = format!("{}Cookie: {}\r\n", self.pages.own_fields(), self.cookie);
        self.pages.raw("GET", target, &fields, "")
    }

    /// The JSON that is there.
    pub(crate) fn look(&self, target: &str) -> Value {
        let answer = self.get(target);
        assert_eq!(answer.status, 200, "{target}: {}", answer.text());
        serde_json::from_slice(&answer.body).unwrap()
    }

    pub(crate) fn post(&self, target: &str, body: &Value) -> Answer {
        let fields = format!("{}Cookie: {}\r\n", self.pages.own_fields(), self.cookie);
        self.pages.raw("POST", target, &fields, &body.to_string())
    }

    /// Has something done, which must work.
    pub(crate) fn act(&self, target: &str, body: &Value) -> Value {
        let answer = self.post(target, body);
        assert_eq!(answer.status, 200, "{target}: {}", answer.text());
        serde_json::from_slice(&answer.body).unwrap()
    }

    /// What was done last.
    pub(crate) fn last_action(&self) -> Value {
        self.look("/v1/audit")["entries"][0].clone()
    }
}

pub(crate) fn json_of(answer: &Answer) -> Value {
    serde_json::from_slice(&answer.body).unwrap()
}
