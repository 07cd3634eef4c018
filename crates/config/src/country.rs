//! Countries by their codes (ISO 3166-1, two letters), and sets of them.

use std::fmt;

use super::fault::{Faults, Spot};
use super::tree::Section;

/// A country, or that none is known of an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Country(u16);

/// Countries, and perhaps addresses of which none is known.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct CountrySet {
    bits: [u64; SET_WORDS],
}

/// Two letters.
const PAIRS: u16 = 26 * 26;
const SET_WORDS: usize = (PAIRS as usize + 1).div_ceil(64);

/// The word for an address without a country.
const UNKNOWN: &str = "unknown";

/// What a country begins with where addresses stand, too.
const PREFIX: &str = "country:";

impl Country {
    /// No country is known.
    pub const UNKNOWN: Country = Country(PAIRS);

    /// A code as a file of countries has it, which may be of one that this program does not know.
    pub fn of_code(code: &[u8]) -> Option<Country> {
        let number = |byte: u8| match byte.to_ascii_uppercase() {
            byte @ b'A'..=b'Z' => Some(u16::from(byte - b'A')),
            _ => None,
        };
        match code {
            [first, second] => Some(Country(number(*first)? * 26 + number(*second)?)),
            _ => None,
        }
    }

    /// A code as it is written in a config, or `unknown`.
    ///
    /// # Errors
    /// It is none, and what to write.
    pub fn parse(text: &str) -> Result<Country, String> {
        if text == UNKNOWN {
            return Ok(Country::UNKNOWN);
        }
        let code = text.to_ascii_uppercase();
        let (_, renamed) = match OTHER_CODES.iter().find(|(other, _)| *other == code) {
            Some(found) => *found,
            None => ("", ""),
        };
        if !renamed.is_empty() {
            return Err(format!("its code of ISO 3166-1 is `{renamed}`"));
        }
        let is_code = CODES.split_ascii_whitespace().any(|known| known == code);
        { Country::of_code(code.as_bytes()).filter(|_| is_code) }.ok_or_else(|| {
            "write the two letters of ISO 3166-1, such as `DE`, or `unknown` for addresses of \
             which no country is known"
                .to_owned()
        })
    }

    /// Its two letters in upper case; nothing where none is known.
    pub fn code(self) -> Option<[u8; 2]> {
        let letter = |number: u16| b'A' + (number % 26) as u8;
        (self.0 < PAIRS).then(|| [letter(self.0 / 26), letter(self.0)])
    }
}

impl fmt::Display for Country {
    /// As it is written in a config.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.code() {
            Some(code) => f.write_str(&String::from_utf8_lossy(code)),
            None => f.write_str(UNKNOWN),
        }
    }
}

impl CountrySet {
    /// Reads a list of codes.
    pub(crate) fn read(section: &Section, key: &str, faults: &mut Faults<'_>) -> CountrySet {
        CountrySet::of(section.given_texts(key).into_iter(), faults)
    }

    /// The countries among words of clients, and the other words.
    pub(crate) fn split<'t>(
        words: Vec<(&'t str, Spot)>,
        faults: &mut Faults<'_>,
    ) -> (CountrySet, Vec<(&'t str, Spot)>) {
        let (mut countries, mut others) = (Vec::new(), Vec::new());
        for (text, spot) in words {
            match text.strip_prefix(PREFIX) {
                Some(code) => countries.push((code, spot)),
                None => others.push((text, spot)),
            }
        }
        (CountrySet::of(countries.into_iter(), faults), others)
    }

    fn of<'t>(codes: impl Iterator<Item = (&'t str, Spot)>, faults: &mut Faults<'_>) -> CountrySet {
        let mut set = CountrySet::default();
        for (text, spot) in codes {
            match Country::parse(text) {
                Ok(country) => set.insert(country),
                Err(hint) => {
                    let message = format!("{text:?} is no country");
                    faults.error(spot, message).hint(hint);
                }
            }
        }
        set
    }

    /// Adds one.
    pub fn insert(&mut self, country: Country) {
        self.bits[usize::from(country.0 / 64)] |= 1 << (country.0 % 64);
    }

    /// Whether this one is among them.
    #[inline]
    pub fn has(&self, country: Country) -> bool {
        self.bits[usize::from(country.0 / 64)] & (1 << (country.0 % 64)) != 0
    }

    /// There are none.
    pub fn is_empty(&self) -> bool {
        self.bits == [0; SET_WORDS]
    }

    /// Each of them, in the order of their letters.
    pub fn iter(&self) -> impl Iterator<Item = Country> {
        (0..=PAIRS).map(Country).filter(|one| self.has(*one))
    }
}

impl fmt::Debug for CountrySet {
    /// As it is written in a config.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = self.iter().map(|one| one.to_string());
        f.debug_list().entries(names).finish()
    }
}

/// Tells of countries that are asked for where no file says which addresses are theirs.
pub(crate) fn miss_countries(
    root: &Section,
    asked: &CountrySet,
    spot: Spot,
    faults: &mut Faults<'_>,
) {
    if !asked.is_empty() && root.given("countries").is_none() {
        let hint = "write `countries = \"GeoLite2-Country.mmdb\"`, or another file in MaxMind's \
                    format, above the first table";
        faults
            .error(spot, "no file says which addresses are of which country")
            .hint(hint);
    }
}

/// Codes of ISO 3166-1, and `XK`, which files of countries have for Kosovo.
const CODES: &str = "\
    AD AE AF AG AI AL AM AO AQ AR AS AT AU AW AX AZ BA BB BD BE BF BG BH BI BJ BL BM BN BO BQ BR \
    BS BT BV BW BY BZ CA CC CD CF CG CH CI CK CL CM CN CO CR CU CV CW CX CY CZ DE DJ DK DM DO DZ \
    EC EE EG EH ER ES ET FI FJ FK FM FO FR GA GB GD GE GF GG GH GI GL GM GN GP GQ GR GS GT GU GW \
    GY HK HM HN HR HT HU ID IE IL IM IN IO IQ IR IS IT JE JM JO JP KE KG KH KI KM KN KP KR KW KY \
    KZ LA LB LC LI LK LR LS LT LU LV LY MA MC MD ME MF MG MH MK ML MM MN MO MP MQ MR MS MT MU MV \
    MW MX MY MZ NA NC NE NF NG NI NL NO NP NR NU NZ OM PA PE PF PG PH PK PL PM PN PR PS PT PW PY \
    QA RE RO RS RU RW SA SB SC SD SE SG SH SI SJ SK SL SM SN SO SR SS ST SV SX SY SZ TC TD TF TG \
    TH TJ TK TL TM TN TO TR TT TV TW TZ UA UG UM US UY UZ VA VC VE VG VI VN VU WF WS XK YE YT ZA \
    ZM ZW";

/// What people write, and what it is.
const OTHER_CODES: [(&str, &str); 3] = [("UK", "GB"), ("EL", "GR"), ("KO", "KR")];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_are_two_letters_of_the_list_in_either_case() {
        assert_eq!(CODES.split_ascii_whitespace().count(), 250);
        for code in CODES.split_ascii_whitespace() {
            let country = Country::parse(code).unwrap();
            assert_eq!(country.to_string(), code);
            assert_eq!(Country::parse(&code.to_ascii_lowercase()), Ok(country));
        }
        assert_eq!(Country::parse("unknown"), Ok(Country::UNKNOWN));
        for wrong in ["", "D", "DEU", "ZZ", "??", "D\u{c4}", "UNKNOWN", "all"] {
            assert!(Country::parse(wrong).is_err(), "{wrong}");
        }
        assert!(Country::parse("uk").unwrap_err().contains("`GB`"));
    }

    #[test]
    fn codes_of_files_are_any_two_letters() {
        let code = |text: &str| Country::of_code(text.as_bytes()).map(|one| one.to_string());
        assert_eq!(code("de").as_deref(), Some("DE"));
        assert_eq!(code("ZZ").as_deref(), Some("ZZ"));
        for wrong in ["", "D", "DEU", "1A", "\u{e4}"] {
            assert_eq!(code(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn set_has_those_that_were_put_into_it() {
        let mut set = CountrySet::default();
        assert!(set.is_empty());
        let all = ["AD", "DE", "ZW", "unknown"].map(|text| Country::parse(text).unwrap());
        for country in all {
            set.insert(country);
        }
        assert_eq!(set.iter().collect::<Vec<_>>(), all);
        assert!(!set.has(Country::parse("FR").unwrap()) && !set.is_empty());
        assert_eq!(format!("{set:?}"), "[\"AD\", \"DE\", \"ZW\", \"unknown\"]");
    }
}
