//! What a link is like, as `--link` says it.

use std::fmt;
use std::time::Duration;

use hob_load::{parse_bit_rate, parse_duration};

use crate::limits::LINK_DELAY_MAX;

/// What a link does to packets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LinkSettings {
    /// Bits a second each way, of frames as on Ethernet; none for as many as come.
    pub(crate) bits_per_second: Option<u64>,
    /// How much longer a round trip takes: half of it is waited for each way.
    pub(crate) round_trip: Duration,
}

impl LinkSettings {
    /// Reads `1Gbit,0.2ms`: bits a second each way, and how much longer a round trip takes.
    ///
    /// # Errors
    /// What is wrong, and what to write.
    pub fn parse(text: &str) -> Result<LinkSettings, String> {
        let wrong = |why: &str| {
            format!(
                "{why}; write RATE,DELAY as in 1Gbit,0.2ms: bits a second each way, and how much \
                 longer a round trip takes"
            )
        };
        let (rate, delay) = text
            .split_once(',')
            .ok_or_else(|| wrong("it has no comma"))?;
        let bits_per_second = parse_bit_rate(rate).map_err(|why| wrong(&why))?;
        let round_trip = parse_duration(delay).map_err(|why| wrong(&why))?;
        if round_trip > LINK_DELAY_MAX {
            let most = LINK_DELAY_MAX.as_secs();
            return Err(wrong(&format!(
                "{delay:?} is too long, {most}s is the most"
            )));
        }
        Ok(LinkSettings {
            bits_per_second: Some(bits_per_second),
            round_trip,
        })
    }
}

impl LinkSettings {
    /// How much of what a link carries in a second so many bytes are, in percent; none where it
    /// carries as many as come.
    pub(crate) fn percent(self, bytes_per_second: f64) -> Option<f64> {
        let bits_per_second = self.bits_per_second?;
        Some(bytes_per_second * 8.0 * 100.0 / bits_per_second as f64)
    }
}

impl fmt::Display for LinkSettings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let bits = self.bits_per_second.unwrap_or(0) as f64;
        let (scale, unit) = match bits {
            1e9.. => (1e9, "Gbit/s"),
            1e6.. => (1e6, "Mbit/s"),
            1e3.. => (1e3, "Kbit/s"),
            _ => (1.0, "bit/s"),
        };
        let ms = self.round_trip.as_secs_f64() * 1e3;
        match self.bits_per_second {
            None => write!(f, "a round trip takes {ms} ms longer"),
            Some(_) => write!(
                f,
                "{} {unit} each way, a round trip takes {ms} ms longer",
                bits / scale
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn link_has_a_rate_and_a_delay() {
        let read = |text| LinkSettings::parse(text).map(|link| link.to_string());
        let told = |text: &str| Ok(format!("{text} ms longer"));
        assert_eq!(
            read("1Gbit,0.2ms"),
            told("1 Gbit/s each way, a round trip takes 0.2")
        );
        assert_eq!(
            read("2.5Mbit,1s"),
            told("2.5 Mbit/s each way, a round trip takes 1000")
        );
        for wrong in [
            "",
            "1Gbit",
            "1Gbit,",
            ",1ms",
            "1Gbit,0.2",
            "1G,1ms",
            "0bit,1ms",
            "1Gbit,1ms,1ms",
            "1Gbit,11s",
            "1Gbit, 1ms",
            "-1Gbit,1ms",
        ] {
            let why = LinkSettings::parse(wrong).unwrap_err();
            assert!(why.contains("write RATE,DELAY as in 1Gbit,0.2ms"), "{why}");
        }
    }
}
