//! Header rules: what a site and its routes set, add and remove in every answer.

use hob_http::{Fields, Response, ResponseHead};

/// One rule. Rules are followed in order, so a later one has the last word.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HeaderRule {
    /// The field has this value and no other.
    Set(String, String),
    /// One more field, whatever there is.
    Add(String, String),
    /// No field of this name.
    Remove(String),
}

/// All rules for the answers of one route, or of a site where no route answers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HeaderRules {
    rules: Vec<HeaderRule>,
}

impl HeaderRules {
    /// Takes the rules in the order in which they are to be followed.
    pub fn new(rules: Vec<HeaderRule>) -> HeaderRules {
        HeaderRules { rules }
    }

    /// True when answers stay as they are.
    pub fn is_empty(&self) -> bool {
        self.rules.is_empty()
    }

    /// The rules in order.
    pub fn iter(&self) -> impl Iterator<Item = &HeaderRule> {
        self.rules.iter()
    }

    /// Follows the rules.
    pub fn apply(&self, fields: &mut Fields) {
        self.rules.iter().for_each(|rule| rule.apply(fields));
    }

    /// Follows the rules in an answer. One with a prepared head has them already; and how long an
    /// error that the server made by itself may be kept is not what the rules are about: a file
    /// that is there a minute later must be seen.
    pub fn dress(&self, response: &mut Response) {
        if self.is_empty() || matches!(response.head, ResponseHead::Prepared(_)) {
            return;
        }
        let is_own_error = response.is_stand_in;
        let fields = response.fields_mut();
        for rule in &self.rules {
            if !(is_own_error && rule.is_about_caching()) {
                rule.apply(fields);
            }
        }
    }
}

impl HeaderRules {
    /// Follows those rules again that do not add up, in fields to which others have come.
    pub fn follow_again(&self, fields: &mut Fields) {
        let is_repeatable = |rule: &&HeaderRule| !matches!(rule, HeaderRule::Add(..));
        let rules = self.rules.iter().filter(is_repeatable);
        rules.for_each(|rule| rule.apply(fields));
    }
}

impl HeaderRule {
    fn apply(&self, fields: &mut Fields) {
        match self {
            HeaderRule::Set(name, value) => fields.set(name.as_bytes(), value.as_bytes()),
            HeaderRule::Add(name, value) => fields.add(name.as_bytes(), value.as_bytes()),
            HeaderRule::Remove(name) => {
                fields.remove(name.as_bytes());
                true
            }
        };
    }

    fn is_about_caching(&self) -> bool {
        match self {
            HeaderRule::Set(name, _) | HeaderRule::Add(name, _) => {
                let is = |known: &str| name.eq_ignore_ascii_case(known);
                is("Cache-Control") || is("Expires")
            }
            HeaderRule::Remove(_) => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::rc::Rc;

    use hob_http::{Body, Prepared};

    use super::*;

    fn rules() -> HeaderRules {
        let text = str::to_owned;
        HeaderRules::new(vec![
            HeaderRule::Remove(text("Server")),
            HeaderRule::Set(text("X-Frame-Options"), text("DENY")),
            HeaderRule::Add(text("Link"), text("</a>")),
            HeaderRule::Add(text("Link"), text("</b>")),
            HeaderRule::Set(text("Cache-Control"), text("max-age=60")),
            HeaderRule::Remove(text("X-Gone")),
        ])
    }

    fn response() -> Response {
        let mut fields = Fields::new();
        fields.add(b"server", b"x");
        fields.add(b"x-frame-options", b"ALLOW");
        fields.add(b"Link", b"</own>");
        Response::new(200, fields, Body::Empty)
    }

    #[test]
    fn rules_are_followed_in_order() {
        let mut response = response();
        rules().dress(&mut response);
        let expected = "Link: </own>\r\nX-Frame-Options: DENY\r\nLink: </a>\r\nLink: </b>\r\n\
                        Cache-Control: max-age=60\r\n";
        assert_eq!(response.fields().lines(), expected.as_bytes());
    }

    #[test]
    fn an_error_of_the_server_s_own_is_not_kept_by_caches() {
        let mut response = response();
        response.is_stand_in = true;
        rules().dress(&mut response);
        assert_eq!(
            response.fields().value(b"X-Frame-Options"),
            Some(&b"DENY"[..])
        );
        assert_eq!(response.fields().value(b"Cache-Control"), None);
    }

    #[test]
    fn a_prepared_head_has_followed_them_already() {
        let prepared = Prepared::new(200, Fields::new(), 0);
        let mut response = Response::prepared(Rc::new(prepared), Body::Empty);
        rules().dress(&mut response);
        assert!(response.fields().is_empty());
    }
}
