//! What an answer must be to count as good: `status=200,301`, `size=1024`, `header=NAME[:VALUE]`.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

/// Fields one run can look for: each is a bit.
const FIELD_COUNT_MAX: usize = 64;

/// One thing that is expected of every answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Expectation {
    /// One of these ranges of codes.
    Status(Vec<(u16, u16)>),
    /// Bytes of the body.
    Size(u64),
    /// A field, perhaps with one exact value.
    Header(ExpectedField),
    /// SHA-256 of the body.
    Sha256([u8; 32]),
}

impl fmt::Display for Expectation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Expectation::Status(ranges) => {
                let range = |(first, last): &(u16, u16)| match first == last {
                    true => first.to_string(),
                    false => format!("{first}-{last}"),
                };
                let ranges: Vec<String> = ranges.iter().map(range).collect();
                write!(f, "status={}", ranges.join(","))
            }
            Expectation::Size(bytes) => write!(f, "size={bytes}"),
            Expectation::Header(field) => match &field.value {
                None => write!(f, "header={}", field.name),
                Some(value) => write!(f, "header={}:{value}", field.name),
            },
            Expectation::Sha256(hash) => write!(f, "sha256={}", hex(hash)),
        }
    }
}

/// A hash as people write it.
pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The SHA-256 of a body as people write it.
pub(crate) fn sha256(bytes: &[u8]) -> String {
    let digest = aws_lc_rs::digest::digest(&aws_lc_rs::digest::SHA256, bytes);
    hex(digest.as_ref())
}

fn from_hex(text: &str) -> Option<[u8; 32]> {
    let is_hex = text.len() == 64 && text.bytes().all(|byte| byte.is_ascii_hexdigit());
    let mut bytes = [0; 32];
    for (index, byte) in bytes.iter_mut().enumerate().filter(|_| is_hex) {
        *byte = u8::from_str_radix(&text[2 * index..2 * index + 2], 16).ok()?;
    }
    is_hex.then_some(bytes)
}

/// A field that must be there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExpectedField {
    name: String,
    value: Option<String>,
}

impl ExpectedField {
    pub(crate) fn new(text: &str) -> Option<ExpectedField> {
        let (name, value) = match text.split_once(':') {
            Some((name, value)) => (name.trim(), Some(value.trim().to_owned())),
            None => (text.trim(), None),
        };
        (!name.is_empty()).then(|| ExpectedField {
            name: name.to_owned(),
            value,
        })
    }

    /// Is this line that field, with that value?
    pub(crate) fn is(&self, name: &[u8], value: &[u8]) -> bool {
        let has_value = |wanted: &String| wanted.as_bytes() == value;
        self.name.as_bytes().eq_ignore_ascii_case(name) && self.value.as_ref().is_none_or(has_value)
    }
}

impl FromStr for Expectation {
    type Err = String;

    fn from_str(text: &str) -> Result<Expectation, String> {
        let wrong = || {
            format!(
                "{text:?} is nothing an answer can be checked for; write status=200, \
                 status=200-299,304, size=BYTES, header=NAME, header=NAME:VALUE or \
                 sha256=HASH of the body in 64 hexadecimal digits"
            )
        };
        let (what, value) = text.split_once('=').ok_or_else(wrong)?;
        match what {
            "status" => {
                let ranges = value.split(',').map(status_range).collect::<Option<_>>();
                ranges.map(Expectation::Status).ok_or_else(wrong)
            }
            "size" => value.parse().map(Expectation::Size).map_err(|_| wrong()),
            "header" => ExpectedField::new(value)
                .map(Expectation::Header)
                .ok_or_else(wrong),
            "sha256" => from_hex(value).map(Expectation::Sha256).ok_or_else(wrong),
            _ => Err(wrong()),
        }
    }
}

fn status_range(text: &str) -> Option<(u16, u16)> {
    let (first, last) = text.split_once('-').unwrap_or((text, text));
    let code = |text: &str| text.parse().ok().filter(|code| (200..600).contains(code));
    let (first, last) = (code(first)?, code(last)?);
    (first <= last).then_some((first, last))
}

/// All that is expected of an answer, ready to be asked.
#[derive(Debug, Clone)]
pub(crate) struct Expected {
    /// For each code from 200 to 599: is it good?
    status: Vec<bool>,
    /// Somebody has said which status is good.
    pub(crate) has_own_status: bool,
    size: Option<u64>,
    /// SHA-256 of the body.
    pub(crate) hash: Option<[u8; 32]>,
    /// All fields that are looked for in this run, each a bit.
    pub(crate) fields: Arc<[ExpectedField]>,
    /// Those that must be in this answer.
    wanted_fields: u64,
}

/// What is expected of each of several answers: what is usual, and on top of it what each has of
/// its own, which takes the place of a usual status, size or hash.
pub(crate) fn expected_of<'a>(
    usual: &'a [Expectation],
    own: impl Iterator<Item = &'a [Expectation]> + Clone,
) -> Result<Vec<Arc<Expected>>, String> {
    let mut fields: Vec<ExpectedField> = Vec::new();
    for one in usual.iter().chain(own.clone().flatten()) {
        if let Expectation::Header(field) = one
            && !fields.contains(field)
        {
            fields.push(field.clone());
        }
    }
    if fields.len() > FIELD_COUNT_MAX {
        return Err(format!(
            "at most {FIELD_COUNT_MAX} header fields can be expected"
        ));
    }
    let fields: Arc<[ExpectedField]> = fields.into();
    let of_all = Arc::new(Expected::new(usual, &fields)?);
    let each = own.map(|own| {
        if own.is_empty() {
            return Ok(of_all.clone());
        }
        let has = |kind: &Expectation| own.iter().any(|one| one.is_like(kind));
        let kept = usual.iter().filter(|kind| !has(kind));
        let whole: Vec<Expectation> = kept.chain(own).cloned().collect();
        Expected::new(&whole, &fields).map(Arc::new)
    });
    each.collect()
}

impl Expectation {
    /// Do both say something that can be said once?
    fn is_like(&self, other: &Expectation) -> bool {
        !matches!(self, Expectation::Header(_))
            && std::mem::discriminant(self) == std::mem::discriminant(other)
    }
}

impl Expected {
    /// Without an expectation of the status, 200 to 399 are good. `fields` has all that the run
    /// looks for.
    fn new(all: &[Expectation], fields: &Arc<[ExpectedField]>) -> Result<Expected, String> {
        let mut ranges = Vec::new();
        let mut size = None;
        let mut hash = None;
        let mut wanted_fields = 0;
        for one in all {
            match one {
                Expectation::Status(more) => ranges.extend_from_slice(more),
                Expectation::Header(field) => {
                    let place = fields.iter().position(|one| one == field);
                    wanted_fields |= place.map_or(0, |place| 1 << place);
                }
                Expectation::Size(_) if size.is_some() => {
                    return Err("an answer has one size; give --expect size=... once".to_owned());
                }
                Expectation::Size(bytes) => size = Some(*bytes),
                Expectation::Sha256(_) if hash.is_some() => {
                    return Err("a body has one hash; give --expect sha256=... once".to_owned());
                }
                Expectation::Sha256(bytes) => hash = Some(*bytes),
            }
        }
        let has_own_status = !ranges.is_empty();
        if !has_own_status {
            ranges.push((200, 399));
        }
        let is_good = |code: u16| {
            ranges
                .iter()
                .any(|(first, last)| (*first..=*last).contains(&code))
        };
        Ok(Expected {
            status: (200..600).map(is_good).collect(),
            has_own_status,
            size,
            hash,
            fields: fields.clone(),
            wanted_fields,
        })
    }

    pub(crate) fn has_status(&self, status: u16) -> bool {
        let index = usize::from(status).checked_sub(200);
        index
            .and_then(|index| self.status.get(index))
            .is_some_and(|is_good| *is_good)
    }

    /// The size of a body that is not the one expected.
    pub(crate) fn wanted_size(&self, body_bytes: u64) -> Option<u64> {
        self.size.filter(|size| *size != body_bytes)
    }

    /// The first field that was not seen.
    pub(crate) fn missing_field(&self, seen: u64) -> Option<&str> {
        let index = (self.wanted_fields & !seen).trailing_zeros() as usize;
        self.fields.get(index).map(|field| field.name.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn expectations_are_read_or_refused_with_what_to_write() {
        assert_eq!("size=5".parse(), Ok(Expectation::Size(5)));
        let ranges = vec![(200, 299), (304, 304)];
        assert_eq!(
            "status=200-299,304".parse(),
            Ok(Expectation::Status(ranges))
        );
        assert!("header=a: b".parse::<Expectation>().is_ok());
        for wrong in [
            "",
            "size=",
            "status=20",
            "status=300-200",
            "status=",
            "hash=1",
            "header=:x",
        ] {
            let error = wrong.parse::<Expectation>().unwrap_err();
            assert!(error.contains("write status=200"), "{error}");
        }
    }

    #[test]
    fn usual_expectation_is_an_answer_below_400() {
        let usual = Expected::new(&[], &Vec::new().into()).unwrap();
        let good: Vec<u16> = (0..700).filter(|code| usual.has_status(*code)).collect();
        assert_eq!(good, (200..400).collect::<Vec<u16>>());
        assert_eq!(usual.wanted_size(7), None);
        assert_eq!(usual.missing_field(0), None);
    }

    #[test]
    fn own_expectation_takes_the_place_of_a_usual_one_of_its_kind() {
        let of = |texts: &[&str]| -> Vec<Expectation> {
            texts.iter().map(|text| text.parse().unwrap()).collect()
        };
        let usual = of(&["status=200", "size=5"]);
        let own = of(&["status=404"]);
        let all = expected_of(&usual, [own.as_slice(), &[]].into_iter()).unwrap();
        assert!(all[0].has_status(404) && !all[0].has_status(200));
        assert_eq!(all[0].wanted_size(6), Some(5));
        assert!(all[1].has_status(200));
        let twice = of(&["size=1", "size=2"]);
        assert!(expected_of(&[], [twice.as_slice()].into_iter()).is_err());
    }

    #[test]
    fn first_missing_field_is_named() {
        let all = ["header=a", "header=b"].map(|text| text.parse().unwrap());
        let own = [[].as_slice(), &all[..1]];
        let expected = expected_of(&all[1..], own.into_iter()).unwrap();
        assert_eq!(expected[0].missing_field(0), Some("b"));
        assert_eq!(expected[0].missing_field(1), None);
        let expected = &expected[1];
        assert_eq!(expected.missing_field(1), Some("a"));
        let expected = &expected_of(&all, [[].as_slice()].into_iter()).unwrap()[0];
        assert_eq!(expected.missing_field(0), Some("a"));
        assert_eq!(expected.missing_field(1), Some("b"));
        assert_eq!(expected.missing_field(3), None);
    }
}
