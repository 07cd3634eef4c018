//! Reason phrases of status codes (RFC 9110 section 15 and the IANA registry).

/// The phrase of a status code; that of its class for codes nobody has registered. 418 is marked
/// unused in the registry but known to all.
//= rfc9110#16.2.1
pub fn phrase(status: u16) -> &'static str {
    match status {
        100 => "Continue",
        101 => "Switching Protocols",
        102 => "Processing",
        103 => "Early Hints",
        104 => "Upload Resumption Supported",
        200 => "OK",
        201 => "Created",
        202 => "Accepted",
        203 => "Non-Authoritative Information",
        204 => "No Content",
        205 => "Reset Content",
        206 => "Partial Content",
        207 => "Multi-Status",
        208 => "Already Reported",
        226 => "IM Used",
        300 => "Multiple Choices",
        301 => "Moved Permanently",
        302 => "Found",
        303 => "See Other",
        304 => "Not Modified",
        305 => "Use Proxy",
        307 => "Temporary Redirect",
        308 => "Permanent Redirect",
        400 => "Bad Request",
        401 => "Unauthorized",
        402 => "Payment Required",
        403 => "Forbidden",
        404 => "Not Found",
        405 => "Method Not Allowed",
        406 => "Not Acceptable",
        407 => "Proxy Authentication Required",
        408 => "Request Timeout",
        409 => "Conflict",
        410 => "Gone",
        411 => "Length Required",
        412 => "Precondition Failed",
        413 => "Content Too Large",
        414 => "URI Too Long",
        415 => "Unsupported Media Type",
        416 => "Range Not Satisfiable",
        417 => "Expectation Failed",
        418 => "I'm a Teapot",
        421 => "Misdirected Request",
        422 => "Unprocessable Content",
        423 => "Locked",
        424 => "Failed Dependency",
        425 => "Too Early",
        426 => "Upgrade Required",
        428 => "Precondition Required",
        429 => "Too Many Requests",
        431 => "Request Header Fields Too Large",
        451 => "Unavailable For Legal Reasons",
        500 => "Internal Server Error",
        501 => "Not Implemented",
        502 => "Bad Gateway",
        503 => "Service Unavailable",
        504 => "Gateway Timeout",
        505 => "HTTP Version Not Supported",
        506 => "Variant Also Negotiates",
        507 => "Insufficient Storage",
        508 => "Loop Detected",
        510 => "Not Extended",
        511 => "Network Authentication Required",
        other => phrase_of_class(other / 100),
    }
}

fn phrase_of_class(hundreds: u16) -> &'static str {
    match hundreds {
        1 => "Informational",
        2 => "Success",
        3 => "Redirection",
        4 => "Client Error",
        5 => "Server Error",
        _ => "Unknown",
    }
}

/// True for answers that never have a body: 1xx, 204, 304.
//= rfc9110#6.4.1
pub fn is_bodiless(status: u16) -> bool {
    matches!(status, 100..=199 | 204 | 304)
}

/// True for answers without content: those, and 205, whose head says that its length is 0.
//= rfc9110#15.3.6
pub fn has_no_content(status: u16) -> bool {
    is_bodiless(status) || status == 205
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn phrases_of_codes_and_of_their_classes() {
        let cases = [
            (200, "OK"),
            (206, "Partial Content"),
            (404, "Not Found"),
            (413, "Content Too Large"),
            (299, "Success"),
            (499, "Client Error"),
            (599, "Server Error"),
            (0, "Unknown"),
            (999, "Unknown"),
        ];
        for (status, expected) in cases {
            assert_eq!(phrase(status), expected, "{status}");
        }
    }
}
