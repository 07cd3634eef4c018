//! Header rules are followed: what a site and its routes set, add and remove in every answer.

use hob_http::{Fields, Response, ResponseHead};

use hob_config::{HeaderRule, HeaderRules};

/// Follows the rules in the fields of an answer.
pub fn apply(rules: &HeaderRules, fields: &mut Fields) {
    rules.iter().for_each(|rule| follow(rule, fields));
}

/// Follows the rules in an answer. One with a prepared head has them already; and how long an
/// error that the server made by itself may be kept is not what the rules are about: a file
/// that is there a minute later must be seen.
pub fn dress(rules: &HeaderRules, response: &mut Response) {
    if rules.is_empty() || matches!(response.head, ResponseHead::Prepared(_)) {
        return;
    }
    let is_own_error = response.is_stand_in;
    let fields = response.fields_mut();
    for rule in rules.iter() {
        if !(is_own_error && is_about_caching(rule)) {
            follow(rule, fields);
        }
    }
}

/// Follows those rules again that do not add up, in fields to which others have come.
pub fn follow_again(rules: &HeaderRules, fields: &mut Fields) {
    let is_repeatable = |rule: &&HeaderRule| !matches!(rule, HeaderRule::Add(..));
    let rules = rules.iter().filter(is_repeatable);
    rules.for_each(|rule| follow(rule, fields));
}

fn follow(rule: &HeaderRule, fields: &mut Fields) {
    match rule {
        HeaderRule::Set(name, value) => fields.set(name.as_bytes(), value.as_bytes()),
        HeaderRule::Default(name, _) if fields.value(name.as_bytes()).is_some() => true,
        HeaderRule::Add(name, value) | HeaderRule::Default(name, value) => {
            fields.add(name.as_bytes(), value.as_bytes())
        }
        HeaderRule::Remove(name) => {
            fields.remove(name.as_bytes());
            true
        }
    };
}

fn is_about_caching(rule: &HeaderRule) -> bool {
    match rule {
        HeaderRule::Set(name, _) | HeaderRule::Add(name, _) => {
            let is = |known: &str| name.eq_ignore_ascii_case(known);
            is("Cache-Control") || is("Expires")
        }
        HeaderRule::Remove(_) | HeaderRule::Default(..) => false,
    }
}

#[cfg(test)]
mod tests {
    use std::rc::Rc;

    use hob_http::{Body, PreparedHead};

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
        dress(&rules(), &mut response);
        let expected = "Link: </own>\r\nX-Frame-Options: DENY\r\nLink: </a>\r\nLink: </b>\r\n\
                        Cache-Control: max-age=60\r\n";
        assert_eq!(response.fields().lines(), expected.as_bytes());
    }

    #[test]
    fn default_is_for_answers_that_say_nothing() {
        let rule = |name: &str| HeaderRule::Default(name.to_owned(), "default".to_owned());
        let rules = HeaderRules::new(vec![rule("X-Frame-Options"), rule("Referrer-Policy")]);
        let mut response = response();
        dress(&rules, &mut response);
        let expected = "server: x\r\nx-frame-options: ALLOW\r\nLink: </own>\r\n\
                        Referrer-Policy: default\r\n";
        assert_eq!(response.fields().lines(), expected.as_bytes());
    }

    #[test]
    fn an_error_of_the_server_s_own_is_not_kept_by_caches() {
        let mut response = response();
        response.is_stand_in = true;
        dress(&rules(), &mut response);
        assert_eq!(
            response.fields().value(b"X-Frame-Options"),
            Some(&b"DENY"[..])
        );
        assert_eq!(response.fields().value(b"Cache-Control"), None);
    }

    #[test]
    fn a_prepared_head_has_followed_them_already() {
        let prepared = PreparedHead::new(200, Fields::new(), 0);
        let mut response = Response::prepared(Rc::new(prepared), Body::Empty);
        dress(&rules(), &mut response);
        assert!(response.fields().is_empty());
    }
}
