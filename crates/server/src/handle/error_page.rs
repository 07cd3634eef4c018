//! The pages sent for errors where the config names none, and for redirects, and what a status code
//! means.

use std::io::Write;

use hob_http::status::phrase;

use super::html::{STYLE, escape};

/// The page for a status code: HTML that shows code, phrase and what that means.
pub fn error_page(status: u16) -> Vec<u8> {
    let (phrase, meaning) = (phrase(status), explanation(status));
    let mut out = Vec::with_capacity(STYLE.len() + 512);
    write!(
        out,
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width,initial-scale=1\">\n\
         <title>{status} {phrase}</title>\n<style>\n{STYLE}\
         main{{padding-top:12vh}}\
         h1 b{{display:block;font-size:3.5rem;line-height:1.1;color:var(--soft)}}\n\
         </style>\n</head>\n<body>\n<main>\n<h1><b>{status}</b> {phrase}</h1>\n<p>{meaning}</p>\n\
         </main>\n</body>\n</html>\n"
    )
    .expect("a vector takes every byte");
    out
}

/// What the few who do not follow a redirect by themselves see.
//= rfc9110#15.4
pub fn redirect_page(status: u16, location: &[u8]) -> Vec<u8> {
    let phrase = phrase(status);
    let mut out = format!(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <title>{status} {phrase}</title>\n</head>\n<body>\n<p>{phrase}: <a href=\""
    )
    .into_bytes();
    escape(location, &mut out);
    out.extend_from_slice(b"\">");
    escape(location, &mut out);
    out.extend_from_slice(b"</a></p>\n</body>\n</html>\n");
    out
}

/// What a status code means to the person who sees it, in one sentence.
pub fn explanation(status: u16) -> &'static str {
    if let Ok(index) = EXPLANATIONS.binary_search_by_key(&status, |known| known.0) {
        return EXPLANATIONS[index].1;
    }
    match status {
        400..500 => "The server cannot answer this request as it was sent.",
        500..600 => "Something went wrong on the server; please try again later.",
        _ => "The server has nothing else to say about this address.",
    }
}

/// Sorted by status code.
const EXPLANATIONS: &[(u16, &str)] = &[
    (400, "The server did not understand the request."),
    (
        401,
        "This address asks who you are: a name and a password, or a token.",
    ),
    (403, "You are not allowed to see this address."),
    (404, "There is nothing at this address."),
    (405, "This address does not answer this kind of request."),
    (
        406,
        "This address has nothing in a form that your program accepts.",
    ),
    (408, "The request took too long to arrive."),
    (409, "The request does not fit what is there now."),
    (410, "What was at this address has been removed for good."),
    (411, "The request has to say how long its body is."),
    (
        412,
        "What is there now does not meet the conditions of the request.",
    ),
    (413, "The request is larger than this address accepts."),
    (414, "The address is longer than the server accepts."),
    (415, "This address does not accept a body of this type."),
    (416, "The part that was asked for is not there."),
    (417, "The server cannot do what the request expects."),
    (418, "This server has a kettle, but no coffee."),
    (
        421,
        "This server does not answer for the name that was asked.",
    ),
    (426, "This address asks for another protocol."),
    (
        429,
        "There were too many requests from you in a short time.",
    ),
    (
        431,
        "The header of the request is larger than the server accepts.",
    ),
    (451, "This address may not be shown for legal reasons."),
    (500, "The server failed while it made the answer."),
    (501, "The server does not know this kind of request."),
    (
        502,
        "The program behind this address gave no usable answer.",
    ),
    (
        503,
        "The server is busy or being worked on; please try again in a moment.",
    ),
    (
        504,
        "The program behind this address took too long to answer.",
    ),
    (505, "The server does not speak this version of HTTP."),
    (507, "The server has no room left for this request."),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_sorted() {
        assert!(EXPLANATIONS.is_sorted_by(|one, other| one.0 < other.0));
    }

    #[test]
    fn every_error_is_explained_in_one_sentence() {
        for status in 400..600 {
            let text = explanation(status);
            assert!(
                text.ends_with('.') && text.matches('.').count() == 1,
                "{status}: {text}"
            );
        }
    }

    #[test]
    fn page_of_a_redirect_links_to_its_location() {
        let page = String::from_utf8(redirect_page(301, b"/a%20b/?c=\"&d")).unwrap();
        assert_eq!(
            page,
            "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
             <title>301 Moved Permanently</title>\n</head>\n<body>\n<p>Moved Permanently: \
             <a href=\"/a%20b/?c=&quot;&amp;d\">/a%20b/?c=&quot;&amp;d</a></p>\n</body>\n</html>\n"
        );
    }

    #[test]
    fn page_of_an_error() {
        let page = String::from_utf8(error_page(404)).unwrap();
        assert_eq!(
            page.replace(STYLE, "[page.css]\n"),
            include_str!("golden/404.html")
        );
    }
}
