//! What a certificate says about whom it is of: for people, logs and programs. It was checked by
//! others before; here it is only put into words.

use std::fmt::Write as _;

use aws_lc_rs::digest::{SHA256, digest};
use hob_trace::calendar::UtcDateTime;
use x509_parser::asn1_rs::{Any, BmpString, Tag, UniversalString};
use x509_parser::prelude::{
    ASN1Time, AttributeTypeAndValue, FromDer, GeneralName, X509Certificate, X509Name,
};

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
    /// Hosts that it is for.
    pub hosts: Vec<String>,
    /// SHA-256 of all of it, as hexadecimal digits.
    pub fingerprint: String,
}

impl ClientCertificate {
    /// Reads a certificate; `None` when it is not one.
    pub fn from_der(der: &[u8]) -> Option<ClientCertificate> {
        let (_, certificate) = X509Certificate::from_der(der).ok()?;
        let (serial, validity) = (certificate.raw_serial(), certificate.validity());
        Some(ClientCertificate {
            subject: name_text(certificate.subject())?,
            common_name: common_name(certificate.subject()),
            issuer: name_text(certificate.issuer())?,
            serial: hex(serial.strip_prefix(&[0]).unwrap_or(serial)),
            not_before: time_text(validity.not_before),
            not_after: time_text(validity.not_after),
            hosts: hosts(&certificate),
            fingerprint: hex(digest(&SHA256, der).as_ref()),
        })
    }
}

/// Types of attributes that have a short name.
const ATTRIBUTES: &[(&str, &str)] = &[
    (COMMON_NAME, "CN"),
    ("2.5.4.4", "SN"),
    ("2.5.4.5", "serialNumber"),
    ("2.5.4.6", "C"),
    ("2.5.4.7", "L"),
    ("2.5.4.8", "ST"),
    ("2.5.4.9", "street"),
    ("2.5.4.10", "O"),
    ("2.5.4.11", "OU"),
    ("2.5.4.12", "title"),
    ("2.5.4.42", "GN"),
    ("1.2.840.113549.1.9.1", "emailAddress"),
    ("0.9.2342.19200300.100.1.1", "UID"),
    ("0.9.2342.19200300.100.1.25", "DC"),
];
const COMMON_NAME: &str = "2.5.4.3";

/// A moment, as OpenSSL writes it.
fn time_text(time: ASN1Time) -> String {
    let moment = UtcDateTime::from_unix_s(time.timestamp());
    let month = moment.month_name().escape_ascii();
    let (day, year) = (moment.day, moment.year);
    let (hour, minute, second) = (moment.hour, moment.minute, moment.second);
    format!("{month} {day:2} {hour:02}:{minute:02}:{second:02} {year} GMT")
}

/// A distinguished name as RFC 2253 writes it: the last part first. None where it is no whole one.
pub(crate) fn name_text(name: &X509Name<'_>) -> Option<String> {
    let counts = counts(name)?;
    // The parser leaves out what it cannot read, and all behind that: another name would be left.
    if !counts
        .into_iter()
        .eq(name.iter().map(|set| set.iter().count()))
    {
        return None;
    }
    let sets = name.iter().map(|set| {
        let pairs: Vec<String> = set.iter().map(pair_text).collect();
        pairs.join("+")
    });
    let mut sets: Vec<String> = sets.collect();
    sets.reverse();
    Some(sets.join(","))
}

/// How many pairs are in each set of a name, whatever they are.
fn counts(name: &X509Name<'_>) -> Option<Vec<usize>> {
    let (_, list) = Any::from_der(name.as_raw()).ok()?;
    let is_pair = |pair: &Any<'_>| {
        let kind = Any::from_der(pair.data);
        kind.is_ok_and(|(_, kind)| kind.tag() == Tag::Oid)
    };
    let pairs = |set: &Any<'_>| {
        let pairs = values(set.data, Tag::Sequence)?;
        pairs.iter().all(is_pair).then_some(pairs.len())
    };
    values(list.data, Tag::Set)?.iter().map(pairs).collect()
}

/// Values of one kind that stand one after the other, and nothing else.
fn values(mut bytes: &[u8], tag: Tag) -> Option<Vec<Any<'_>>> {
    let mut all = Vec::new();
    while !bytes.is_empty() {
        let (rest, value) = Any::from_der(bytes).ok()?;
        if value.tag() != tag {
            return None;
        }
        all.push(value);
        bytes = rest;
    }
    Some(all)
}

fn pair_text(pair: &AttributeTypeAndValue<'_>) -> String {
    let kind = object_text(pair.attr_type().as_bytes());
    let known = ATTRIBUTES.iter().find(|(known, _)| *known == kind);
    // The value of a type nobody knows is told as it stands.
    let text = known.and_then(|_| string(pair.attr_value()));
    let text = text.map_or_else(
        || format!("#{}", hex(pair.as_slice())),
        |text| escaped(&text),
    );
    let kind = known.map_or(kind.as_str(), |(_, name)| name);
    format!("{kind}={text}")
}

fn common_name(name: &X509Name<'_>) -> String {
    let names = name.iter_common_name();
    let last = names.filter_map(|pair| string(pair.attr_value())).last();
    // A value for an environment: nothing in it may end a line.
    let last = last.unwrap_or_default();
    last.chars().filter(|c| !c.is_control()).collect()
}

fn hosts(certificate: &X509Certificate<'_>) -> Vec<String> {
    let names = certificate.subject_alternative_name().ok().flatten();
    let names = names.iter().flat_map(|names| &names.value.general_names);
    let hosts = names.filter_map(|name| match name {
        GeneralName::DNSName(host) => Some((*host).to_owned()),
        _ => None,
    });
    hosts.collect()
}

fn string(value: &Any<'_>) -> Option<String> {
    match value.tag() {
        Tag::Utf8String | Tag::PrintableString | Tag::Ia5String => {
            String::from_utf8(value.data.to_vec()).ok()
        }
        Tag::T61String => Some(value.data.iter().map(|byte| char::from(*byte)).collect()),
        Tag::BmpString => Some(BmpString::try_from(value).ok()?.string()),
        Tag::UniversalString => Some(UniversalString::try_from(value).ok()?.string()),
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
            let host = "ada.example.com".try_into().unwrap();
            params.subject_alt_names = vec![rcgen::SanType::DnsName(host)];
        });
        let name = "CN=Ada Lövelace,O=Example\\, \\\"Inc\\\",C=DE";
        let expected = ClientCertificate {
            subject: name.to_owned(),
            common_name: "Ada Lövelace".to_owned(),
            issuer: name.to_owned(),
            serial: "0AFF01".to_owned(),
            not_before: "Jan  2 00:00:00 2026 GMT".to_owned(),
            not_after: "Nov 22 00:00:00 2066 GMT".to_owned(),
            hosts: vec!["ada.example.com".to_owned()],
            fingerprint: hex(digest(&SHA256, &der).as_ref()),
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
    fn strings_of_every_kind_are_read() {
        let values = [
            DnValue::TeletexString("Ada".try_into().unwrap()),
            DnValue::BmpString("Ada".try_into().unwrap()),
            DnValue::UniversalString("Ada".try_into().unwrap()),
            DnValue::PrintableString("Ada".try_into().unwrap()),
            DnValue::Ia5String("Ada".try_into().unwrap()),
        ];
        for value in values {
            let der = certificate(|params| {
                params
                    .distinguished_name
                    .push(DnType::CommonName, value.clone());
            });
            let read = ClientCertificate::from_der(&der).unwrap();
            assert_eq!(
                (read.subject.as_str(), read.common_name.as_str()),
                ("CN=Ada", "Ada")
            );
        }
    }

    #[test]
    fn name_that_is_broken_off_is_none_and_not_a_shorter_one() {
        let der = certificate(|params| {
            let name = &mut params.distinguished_name;
            name.push(DnType::OrganizationName, "Example");
            name.push(DnType::CommonName, "Ada");
        });
        // The set of the common name, in issuer and subject, and the type and tag within.
        let pair = [&[SET, 12, 0x30, 10, 6, 3, 0x55, 4, 3, 12, 3], &b"Ada"[..]].concat();
        let at = der
            .windows(pair.len())
            .rposition(|part| part == pair)
            .unwrap();
        for (offset, wrong) in [(0, 0x30), (2, SET), (4, 0x0c), (1, 11), (3, 9)] {
            let mut changed = der.clone();
            changed[at + offset] = wrong;
            assert_eq!(ClientCertificate::from_der(&changed), None, "{offset}");
        }
    }

    const SET: u8 = 0x31;

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
