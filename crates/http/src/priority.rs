//! What a client says of a request's urgency (RFC 9218): `u=1, i`.

/// How urgent an answer is, and whether pieces of it are of use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Priority {
    /// 0 is the most urgent, 7 the least.
    pub urgency: u8,
    /// Pieces are of use before the whole has come.
    pub is_incremental: bool,
}

impl Default for Priority {
    //= rfc9218#4
    fn default() -> Priority {
        Priority {
            urgency: 3,
            is_incremental: false,
        }
    }
}

impl Priority {
    /// Reads the value of a `priority` field: a dictionary of structured fields, of which two
    /// members are known. What cannot be read changes nothing.
    //= rfc9218#5
    pub fn read(value: &[u8]) -> Priority {
        let mut priority = Priority::default();
        for member in value.split(|&byte| byte == b',') {
            let member = member.trim_ascii();
            // Parameters of a member are not known either.
            let member = member
                .split(|&byte| byte == b';')
                .next()
                .unwrap_or_default();
            match member {
                [b'u', b'=', digit @ b'0'..=b'7'] => priority.urgency = digit - b'0',
                b"i" | b"i=?1" => priority.is_incremental = true,
                b"i=?0" => priority.is_incremental = false,
                _ => {}
            }
        }
        priority
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urgency_and_incremental_are_read_and_the_rest_is_not() {
        let read = |text: &str| {
            let priority = Priority::read(text.as_bytes());
            (priority.urgency, priority.is_incremental)
        };
        assert_eq!(read(""), (3, false));
        assert_eq!(read("u=0"), (0, false));
        assert_eq!(read("u=5, i"), (5, true));
        assert_eq!(read("i=?1,u=1;x=2"), (1, true));
        assert_eq!(read("i, i=?0"), (3, false));
        assert_eq!(read("u=8, i=yes, a=b, u"), (3, false));
        assert_eq!(read("u=\"1\", \u{fc}"), (3, false));
    }
}
