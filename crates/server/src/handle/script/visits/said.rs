//! What the head of an answer says of the visit: `Accept-HTSession: HANDLE` keeps it, and
//! `HTTimeout: MINUTES` says for how long. Both are the server's own: clients never see them.

use std::time::Duration;

use hob_http::Fields;

use crate::handle::script::visits::handle::{UnfitHandle, VisitHandle};

/// The field that keeps a visit.
const KEEPS: &[u8] = b"Accept-HTSession";
/// The field that says for how long.
const WAITS: &[u8] = b"HTTimeout";

/// What becomes of handles of programs that can be guessed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WeakHandles {
    /// They are none.
    Refuse,
    /// They hold beside a cookie of the server.
    Bind,
}

/// What a head says.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct VisitSaid {
    /// The visit's handle from now on; `None` where the visit is over.
    pub keeps: Option<Result<VisitHandle, UnfitHandle>>,
    /// The same, where that can be guessed.
    pub weak: Option<VisitHandle>,
    /// How long the visitor's next request is waited for; `None` where it is not said.
    pub wait: Option<Duration>,
    /// What is strange.
    pub note: Option<&'static str>,
}

impl VisitSaid {
    /// Of a head's fields, in their order.
    pub fn of<'a>(fields: impl Iterator<Item = (&'a [u8], &'a [u8])>) -> VisitSaid {
        let mut said = VisitSaid::default();
        let (mut first, mut wait) = (None, None);
        for (index, (name, value)) in fields.enumerate() {
            if name.eq_ignore_ascii_case(KEEPS) {
                if index > 0 && first.is_none() {
                    said.note = Some("Accept-HTSession is not the first field of the head");
                }
                match first {
                    None => first = Some(value),
                    Some(before) if before == value => {}
                    Some(_) => said.keeps = Some(Err(UnfitHandle::Malformed)),
                }
            } else if name.eq_ignore_ascii_case(WAITS) {
                wait.get_or_insert(value);
            }
        }
        let Some(handle) = first else {
            if wait.is_some() {
                said.note = Some("HTTimeout without Accept-HTSession says nothing");
            }
            return said;
        };
        if said.keeps.is_none() {
            said.keeps = Some(VisitHandle::of(handle));
            let weak = VisitHandle::or_weak(handle).ok();
            said.weak = weak.filter(VisitHandle::is_weak);
        }
        if let Some(wait) = wait {
            said.wait = minutes(wait);
            if said.wait.is_none() {
                said.note = Some("HTTimeout is no whole number of minutes");
            }
        }
        said
    }

    /// The handle that keeps the visit, or why there is none.
    pub fn kept(&self, weak: WeakHandles) -> Option<Result<VisitHandle, UnfitHandle>> {
        match (weak, &self.weak) {
            (WeakHandles::Bind, Some(handle)) => Some(Ok(handle.clone())),
            _ => self.keeps.clone(),
        }
    }

    /// Of a head's lines.
    pub fn of_lines(lines: &[u8]) -> VisitSaid {
        let lines = lines.split(|byte| *byte == b'\n');
        VisitSaid::of(lines.filter_map(|line| {
            let colon = memchr::memchr(b':', line)?;
            let (name, value) = line.split_at(colon);
            // Where the status stands says nothing.
            let is_status = name.eq_ignore_ascii_case(b"Status");
            (!is_status).then_some((name, value[1..].trim_ascii()))
        }))
    }

    /// Takes its fields out of a head.
    pub fn take_out(fields: &mut Fields) {
        let is_own =
            |name: &[u8]| name.eq_ignore_ascii_case(KEEPS) || name.eq_ignore_ascii_case(WAITS);
        if fields.iter().any(|(name, _)| is_own(name)) {
            fields.retain(|name, _| !is_own(name));
        }
    }
}

/// Zero is what the config says.
fn minutes(text: &[u8]) -> Option<Duration> {
    let is_number = !text.is_empty() && text.len() <= 9 && text.iter().all(u8::is_ascii_digit);
    let digits = std::str::from_utf8(text).ok().filter(|_| is_number)?;
    let minutes: u64 = digits.parse().ok()?;
    Some(Duration::from_secs(60 * minutes))
}

#[cfg(test)]
mod tests {
    use super::*;

    const ONE: &str = "~9b74c9897bac770ffc029102a200c5de";

    fn of(lines: &str) -> VisitSaid {
        VisitSaid::of_lines(lines.as_bytes())
    }

    fn kept() -> VisitSaid {
        VisitSaid {
            keeps: Some(VisitHandle::of(ONE.as_bytes())),
            ..VisitSaid::default()
        }
    }

    #[test]
    fn head_keeps_a_visit_and_says_for_how_long() {
        let head = format!("Accept-HTSession: {ONE}\r\nHTTimeout: 5\r\nContent-Type: text/html");
        let wait = Some(Duration::from_secs(300));
        assert_eq!(of(&head), VisitSaid { wait, ..kept() });
        assert_eq!(
            of(&format!("Status: 200\naccept-htsession:{ONE}\n")),
            kept()
        );
        assert_eq!(of("Content-Type: text/html\n"), VisitSaid::default());
    }

    #[test]
    fn what_is_out_of_place_is_noted() {
        let head = format!("Content-Type: text/html\nAccept-HTSession: {ONE}");
        let note = Some("Accept-HTSession is not the first field of the head");
        assert_eq!(of(&head), VisitSaid { note, ..kept() });
        let alone = of("HTTimeout: 5\n");
        assert_eq!((alone.keeps, alone.wait), (None, None));
        assert_eq!(
            alone.note,
            Some("HTTimeout without Accept-HTSession says nothing")
        );
        for wrong in ["-1", "five", "1.5", "", "1234567890"] {
            let said = of(&format!("Accept-HTSession: {ONE}\nHTTimeout: {wrong}"));
            assert_eq!(said.wait, None, "{wrong}");
            assert_eq!(said.note, Some("HTTimeout is no whole number of minutes"));
        }
    }

    #[test]
    fn two_handles_are_none_and_the_same_twice_is_one() {
        let twice = format!("Accept-HTSession: {ONE}\nAccept-HTSession: {ONE}");
        assert_eq!(of(&twice), kept());
        let other = ONE.replace('9', "8");
        let two = of(&format!(
            "Accept-HTSession: {ONE}\nAccept-HTSession: {other}"
        ));
        assert_eq!(two.keeps, Some(Err(UnfitHandle::Malformed)));
        let weak = of("Accept-HTSession: 42");
        assert_eq!(weak.keeps, Some(Err(UnfitHandle::Weak)));
        assert_eq!(weak.kept(WeakHandles::Refuse), weak.keeps);
        let bound = weak.kept(WeakHandles::Bind);
        assert_eq!(bound, Some(VisitHandle::or_weak(b"42")));
        assert_eq!(two.kept(WeakHandles::Bind), two.keeps);
        assert_eq!(kept().kept(WeakHandles::Bind), kept().keeps);
        let empty = of("Accept-HTSession:");
        assert_eq!(empty.keeps, Some(Err(UnfitHandle::Malformed)));
    }

    #[test]
    fn fields_are_taken_out() {
        let mut fields = Fields::new();
        for (name, value) in [("accept-htsession", ONE), ("HTTIMEOUT", "5"), ("X-A", "b")] {
            fields.add(name.as_bytes(), value.as_bytes());
        }
        VisitSaid::take_out(&mut fields);
        assert_eq!(fields.lines(), b"X-A: b\r\n");
    }
}
