//! What a certificate says about whom it is of: for people, logs and programs. It was checked by
//! others before; here it is only put into words.
//!
//! ```text
//! Certificate  SEQUENCE { TBS SEQUENCE { [0] version, serial, algorithm, issuer, validity, subject
//! Name         SEQUENCE of SET of SEQUENCE { type OID, value string }
//! Validity     SEQUENCE { UTCTime or GeneralizedTime, the same }
//! ```

use std::fmt::Write as _;

use hob_trace::calendar::Moment;

/// A client's certificate in words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClientCertificate {
    /// Whose it is: a distinguished name as RFC 2253 writes it, `CN=Ada,O=Example,C=DE`.
    pub subject: String,
    /// The common name in it; empty without one.
    pub common_name: String,
    /// Who signed it.
    pub issuer: String,
    /// Its number, as hexadecimal digits.
    pub serial: String,
    /// When it begins to be good, as OpenSSL writes it: `Nov 22 07:21:27 2026 GMT`.
    pub not_before: String,
    /// When it ends to be good.
    pub not_after: String,
}

impl ClientCertificate {
    /// Reads a certificate; `None` when it is not one.
    pub fn from_der(der: &[u8]) -> Option<ClientCertificate> {
        let mut tbs = Der(Der(Der(der).take(SEQUENCE)?).take(SEQUENCE)?);
        if tbs.0.first() == Some(&VERSION) {
            tbs.take(VERSION)?;
        }
        let serial = tbs.take(INTEGER)?;
        tbs.take(SEQUENCE)?;
        let issuer = tbs.take(SEQUENCE)?;
        let mut validity = Der(tbs.take(SEQUENCE)?);
        let subject = tbs.take(SEQUENCE)?;
        let serial = serial.strip_prefix(&[0]).unwrap_or(serial);
        Some(ClientCertificate {
            subject: name_text(subject)?,
            common_name: common_name(subject)?,
            issuer: name_text(issuer)?,
            serial: hex(serial),
            not_before: validity.time()?,
            not_after: validity.time()?,
        })
    }
}

pub(crate) const INTEGER: u8 = 0x02;
pub(crate) const OBJECT: u8 = 0x06;
const UTF8: u8 = 0x0c;
const PRINTABLE: u8 = 0x13;
const TELETEX: u8 = 0x14;
const IA5: u8 = 0x16;
const UTC_TIME: u8 = 0x17;
const TIME: u8 = 0x18;
const UNIVERSAL: u8 = 0x1c;
const BMP: u8 = 0x1e;
pub(crate) const SEQUENCE: u8 = 0x30;
const SET: u8 = 0x31;
pub(crate) const VERSION: u8 = 0xa0;

/// Types of attributes that have a short name.
const ATTRIBUTES: &[(&[u8], &str)] = &[
    (COMMON_NAME, "CN"),
    (&[0x55, 4, 4], "SN"),
    (&[0x55, 4, 5], "serialNumber"),
    (&[0x55, 4, 6], "C"),
    (&[0x55, 4, 7], "L"),
    (&[0x55, 4, 8], "ST"),
    (&[0x55, 4, 9], "street"),
    (&[0x55, 4, 10], "O"),
    (&[0x55, 4, 11], "OU"),
    (&[0x55, 4, 12], "title"),
    (&[0x55, 4, 42], "GN"),
    (
        &[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 1, 9, 1],
        "emailAddress",
    ),
    (&[9, 0x92, 0x26, 0x89, 0x93, 0xf2, 0x2c, 0x64, 1, 1], "UID"),
    (&[9, 0x92, 0x26, 0x89, 0x93, 0xf2, 0x2c, 0x64, 1, 25], "DC"),
];
const COMMON_NAME: &[u8] = &[0x55, 4, 3];

/// Values one after the other, each a tag, a length and so many bytes.
#[derive(Clone, Copy)]
pub(crate) struct Der<'a>(pub(crate) &'a [u8]);

impl<'a> Der<'a> {
    /// The next value; `None` at the end.
    pub(crate) fn next(&mut self) -> Option<(u8, &'a [u8])> {
        let (tag, rest) = self.0.split_first()?;
        let (first, rest) = rest.split_first()?;
        let (len, rest) = match *first {
            short @ 0..0x80 => (usize::from(short), rest),
            long => {
                let count = usize::from(long & 0x7f);
                let (digits, rest) = rest.split_at_checked(count)?;
                if count == 0 || count > 4 {
                    return None;
                }
                let len = digits
                    .iter()
                    .fold(0, |len, digit| len << 8 | usize::from(*digit));
                (len, rest)
            }
        };
        let (value, rest) = rest.split_at_checked(len)?;
        self.0 = rest;
        Some((*tag, value))
    }

    /// The next value, which must have this tag.
    pub(crate) fn take(&mut self, tag: u8) -> Option<&'a [u8]> {
        let (found, value) = self.next()?;
        (found == tag).then_some(value)
    }

    /// A moment, as OpenSSL writes it.
    fn time(&mut self) -> Option<String> {
        let moment = self.moment()?;
        let month = std::str::from_utf8(moment.month_name()).ok()?;
        Some(format!(
            "{month} {:2} {:02}:{:02}:{:02} {} GMT",
            moment.day, moment.hour, moment.minute, moment.second, moment.year
        ))
    }

    /// A moment.
    pub(crate) fn moment(&mut self) -> Option<Moment> {
        let (tag, text) = self.next()?;
        let text = std::str::from_utf8(text).ok()?.strip_suffix('Z')?;
        let (year, rest) = match tag {
            UTC_TIME => {
                let (year, rest) = text.split_at_checked(2)?;
                let year: u32 = year.parse().ok()?;
                (year + if year < 50 { 2000 } else { 1900 }, rest)
            }
            TIME => {
                let (year, rest) = text.split_at_checked(4)?;
                (year.parse().ok()?, rest)
            }
            _ => return None,
        };
        let two = |at: usize| rest.get(at..at + 2)?.parse::<u32>().ok();
        let moment = Moment {
            year,
            month: two(0)?,
            day: two(2)?,
            hour: two(4)?,
            minute: two(6)?,
            second: two(8)?,
        };
        moment.to_unix_s()?;
        Some(moment)
    }
}

/// A distinguished name as RFC 2253 writes it: the last part first.
pub(crate) fn name_text(name: &[u8]) -> Option<String> {
    let mut sets = Vec::new();
    let mut parts = Der(name);
    while !parts.0.is_empty() {
        let mut set = Der(parts.take(SET)?);
        let mut pairs = Vec::new();
        while !set.0.is_empty() {
            pairs.push(pair_text(set.take(SEQUENCE)?)?);
        }
        sets.push(pairs.join("+"));
    }
    sets.reverse();
    Some(sets.join(","))
}

fn pair_text(pair: &[u8]) -> Option<String> {
    let mut pair = Der(pair);
    let object = pair.take(OBJECT)?;
    let (tag, value) = pair.next()?;
    let known = ATTRIBUTES.iter().find(|(known, _)| *known == object);
    let (kind, text) = match known {
        Some((_, kind)) => ((*kind).to_owned(), string(tag, value)),
        // The value of a type nobody knows is told as it stands.
        None => (object_text(object), None),
    };
    let text = text.map_or_else(|| format!("#{}", hex(value)), |text| escaped(&text));
    Some(format!("{kind}={text}"))
}

fn common_name(name: &[u8]) -> Option<String> {
    let mut last = String::new();
    let mut parts = Der(name);
    while !parts.0.is_empty() {
        let mut set = Der(parts.take(SET)?);
        while !set.0.is_empty() {
            let mut pair = Der(set.take(SEQUENCE)?);
            let is_it = pair.take(OBJECT)? == COMMON_NAME;
            let (tag, value) = pair.next()?;
            if let (true, Some(text)) = (is_it, string(tag, value)) {
                // A value for an environment: nothing in it may end a line.
                last = text.chars().filter(|c| !c.is_control()).collect();
            }
        }
    }
    Some(last)
}

fn string(tag: u8, value: &[u8]) -> Option<String> {
    match tag {
        UTF8 | PRINTABLE | IA5 => String::from_utf8(value.to_vec()).ok(),
        TELETEX => Some(value.iter().map(|byte| char::from(*byte)).collect()),
        BMP => {
            let units = value.chunks_exact(2);
            let units: Vec<u16> = units
                .map(|two| u16::from_be_bytes([two[0], two[1]]))
                .collect();
            String::from_utf16(&units).ok()
        }
        UNIVERSAL => {
            let points = value.chunks_exact(4);
            let points =
                points.map(|four| u32::from_be_bytes([four[0], four[1], four[2], four[3]]));
            points.map(char::from_u32).collect()
        }
        _ => None,
    }
}

/// Characters that mean something in a name are marked; control characters are written as bytes.
fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let last = text.chars().count().saturating_sub(1);
    for (at, c) in text.chars().enumerate() {
        match c {
            ',' | '+' | '"' | '\\' | '<' | '>' | ';' => out.extend(['\\', c]),
            '#' if at == 0 => out.push_str("\\#"),
            ' ' if at == 0 || at == last => out.push_str("\\ "),
            c if c.is_control() => {
                let mut bytes = [0; 4];
                for byte in c.encode_utf8(&mut bytes).bytes() {
                    // Writing to a String cannot fail.
                    let _ = write!(out, "\\{byte:02X}");
                }
            }
            c => out.push(c),
        }
    }
    out
}

/// An object identifier as numbers with dots.
fn object_text(object: &[u8]) -> String {
    let mut numbers: Vec<u64> = Vec::new();
    let mut number = 0u64;
    for byte in object {
        number = number << 7 | u64::from(byte & 0x7f);
        if byte & 0x80 == 0 {
            numbers.push(number);
            number = 0;
        }
    }
    let mut text = String::new();
    for (at, number) in numbers.iter().enumerate() {
        // The first two share one number.
        let _ = match at {
            0 => write!(
                text,
                "{}.{}",
                (number / 40).min(2),
                number - (number / 40).min(2) * 40
            ),
            _ => write!(text, ".{number}"),
        };
    }
    text
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        // Writing to a String cannot fail.
        let _ = write!(text, "{byte:02X}");
        text
    })
}

#[cfg(test)]
mod tests {
    use rcgen::{CertificateParams, DnType, DnValue, KeyPair, SerialNumber, date_time_ymd};

    use super::*;

    fn certificate(set: impl FnOnce(&mut CertificateParams)) -> Vec<u8> {
        let mut params = CertificateParams::default();
        params.distinguished_name = rcgen::DistinguishedName::new();
        set(&mut params);
        let key = KeyPair::generate().unwrap();
        params.self_signed(&key).unwrap().der().to_vec()
    }

    #[test]
    fn certificate_is_put_into_the_words_that_openssl_has() {
        let der = certificate(|params| {
            let name = &mut params.distinguished_name;
            name.push(DnType::CountryName, "DE");
            name.push(DnType::OrganizationName, "Example, \"Inc\"");
            name.push(
                DnType::CommonName,
                DnValue::Utf8String("Ada Lövelace".into()),
            );
            params.serial_number = Some(SerialNumber::from(vec![0x0a, 0xff, 1]));
            params.not_before = date_time_ymd(2026, 1, 2);
            params.not_after = date_time_ymd(2066, 11, 22);
        });
        let name = "CN=Ada Lövelace,O=Example\\, \\\"Inc\\\",C=DE";
        let expected = ClientCertificate {
            subject: name.to_owned(),
            common_name: "Ada Lövelace".to_owned(),
            issuer: name.to_owned(),
            serial: "0AFF01".to_owned(),
            not_before: "Jan  2 00:00:00 2026 GMT".to_owned(),
            not_after: "Nov 22 00:00:00 2066 GMT".to_owned(),
        };
        assert_eq!(ClientCertificate::from_der(&der), Some(expected));
    }

    #[test]
    fn name_cannot_end_a_line_or_pass_for_another() {
        assert_eq!(escaped("a\r\nb"), "a\\0D\\0Ab");
        assert_eq!(escaped("# x "), "\\# x\\ ");
        assert_eq!(escaped("x,CN=root"), "x\\,CN=root");
        let der = certificate(|params| {
            let value = DnValue::Utf8String("a\nSSL_X=1".into());
            params.distinguished_name.push(DnType::CommonName, value);
        });
        let read = ClientCertificate::from_der(&der).unwrap();
        assert_eq!(read.common_name, "aSSL_X=1");
        assert_eq!(read.subject, "CN=a\\0ASSL_X=1");
    }

    #[test]
    fn types_without_a_name_are_told_as_numbers() {
        let der = certificate(|params| {
            let kind = DnType::CustomDnType(vec![1, 3, 6, 1, 4, 1, 311, 20]);
            let value = DnValue::Utf8String("x".into());
            params.distinguished_name.push(kind, value);
        });
        let read = ClientCertificate::from_der(&der).unwrap();
        assert_eq!(read.subject, "1.3.6.1.4.1.311.20=#78");
        assert_eq!(read.common_name, "");
    }

    #[test]
    fn cut_or_changed_certificates_never_panic() {
        let der = certificate(|params| {
            params.distinguished_name.push(DnType::CommonName, "x");
        });
        for end in 0..der.len() {
            assert_eq!(ClientCertificate::from_der(&der[..end]), None, "{end}");
        }
        for position in 0..der.len() {
            for value in [0, 1, 0x30, 0x7f, 0x80, 0x84, 0xff] {
                let mut changed = der.clone();
                changed[position] = value;
                let _ = ClientCertificate::from_der(&changed);
            }
        }
    }
}
