//! The one sentence at the end: what moving a script up the ladder would save.

use hob_load::page::time_us;

use crate::ladder::{Figures, RungMeasurement};
use crate::rungs::RungProgram;
use crate::wire::{Cost, WireCosts};

/// Less than this share of the CPU time is nothing to move a script for.
const SHARE_MIN: f64 = 0.05;

/// What a saving is told with.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Scale {
    /// Requests per second.
    pub(crate) rate: f64,
    /// Microseconds that CPU time of one request may be wrong by: a saving within them is none.
    pub(crate) resolution_us: f64,
}

/// Makes the sentence for a script.
pub(crate) fn sentence(name: &str, rungs: &[RungMeasurement], scale: Scale) -> String {
    let rate = scale.rate;
    let of_script: Vec<(String, Figures)> = rungs
        .iter()
        .filter(|one| one.rung.subject == RungProgram::Script)
        .filter_map(|one| Some((one.rung.name(), *one.figures.as_ref().ok()?)))
        .collect();
    let Some((from, now)) = of_script.first() else {
        return format!("{name} could not be measured in any way, so nothing can be said of it.");
    };
    let best = of_script[1..]
        .iter()
        .min_by(|one, other| one.1.cpu.total().total_cmp(&other.1.cpu.total()));
    let Some((to, then)) = best else {
        let floor = floor(rungs, *now, scale).unwrap_or_default();
        return format!("{name} runs only as {from}, so there is nothing to move it to.{floor}");
    };
    let saved = now.cpu.total() - then.cpu.total();
    let share = saved / now.cpu.total();
    if saved.abs() <= scale.resolution_us {
        return format!(
            "Whether moving {name} from {from} to {to} would save CPU time cannot be told: {} and {} \
             a request differ by less than the {} that clock ticks leave open; a larger --count \
             tells more.",
            time_us(now.cpu.total()),
            time_us(then.cpu.total()),
            time_us(scale.resolution_us),
        );
    }
    if share < SHARE_MIN {
        return format!(
            "Moving {name} from {from} to {to} would save nothing worth it: {} of CPU time a request \
             instead of {}.",
            time_us(then.cpu.total()),
            time_us(now.cpu.total()),
        );
    }
    let kept = kept_for_more(&of_script, then.cpu.total(), scale);
    format!(
        "Moving {name} from {from} to {to} would save {} of {} of CPU time a request ({:.0} %) and \
         {} of {} until the answer; at {rate} requests a second that is {} of a CPU.{kept}",
        time_us(saved),
        time_us(now.cpu.total()),
        share * 100.0,
        time_us(now.times.p50_us - then.times.p50_us),
        time_us(now.times.p50_us),
        cores(saved * rate / 1e6),
    )
}

/// A script that is kept and costs more than the best other way: what it changes of itself it
/// undoes, or does again, with each request.
fn kept_for_more(of_script: &[(String, Figures)], best: f64, scale: Scale) -> String {
    let kept = of_script.iter().skip(1);
    let kept = kept.filter(|(name, _)| name.starts_with("resident"));
    let cheapest = kept.min_by(|one, other| one.1.cpu.total().total_cmp(&other.1.cpu.total()));
    match cheapest {
        Some((name, figures)) if figures.cpu.total() - best > scale.resolution_us => format!(
            " Kept ({name}), it costs more than that: {} instead of {}.",
            time_us(figures.cpu.total()),
            time_us(best)
        ),
        _ => String::new(),
    }
}

/// What a program written to stay would cost: the echo in the same language.
fn floor(rungs: &[RungMeasurement], now: Figures, scale: Scale) -> Option<String> {
    let rate = scale.rate;
    let echoes = rungs.iter().filter(|one| one.rung.carrier.is_some());
    let best = echoes
        .filter_map(|one| Some((one, one.figures.as_ref().ok()?)))
        .min_by(|one, other| one.1.cpu.total().total_cmp(&other.1.cpu.total()))?;
    let saved = now.cpu.total() - best.1.cpu.total();
    (saved > scale.resolution_us).then(|| {
        format!(
            " Written to stay ({}), a program that does nothing costs {} instead of {} of CPU time a \
             request; at {rate} requests a second up to {} of a CPU would be saved.",
            best.0.rung.name(),
            time_us(best.1.cpu.total()),
            time_us(now.cpu.total()),
            cores(saved * rate / 1e6),
        )
    })
}

/// The same for the built-in echo: the whole ladder, in the language that gains most.
pub(crate) fn echo_sentence(rungs: &[RungMeasurement], scale: Scale) -> String {
    let rate = scale.rate;
    let mut best: Option<(f64, String)> = None;
    for lower in rungs.iter().filter(|one| one.rung.handler == "cgi") {
        let Ok(now) = &lower.figures else { continue };
        let same = rungs
            .iter()
            .filter(|one| one.rung.language == lower.rung.language);
        for upper in same.filter(|one| one.rung.handler != "cgi") {
            let Ok(then) = &upper.figures else { continue };
            let saved = now.cpu.total() - then.cpu.total();
            if best.as_ref().is_none_or(|(most, _)| saved > *most) {
                let text = format!(
                    "Moving the echo in {} from cgi to {} would save {} of {} of CPU time a request; at \
                     {rate} requests a second that is {} of a CPU.",
                    lower.rung.language.word(),
                    upper.rung.name(),
                    time_us(saved),
                    time_us(now.cpu.total()),
                    cores(saved * rate / 1e6),
                );
                best = Some((saved, text));
            }
        }
    }
    match best {
        Some((saved, text)) if saved > scale.resolution_us => text,
        Some((saved, _)) if saved > 0.0 => format!(
            "Whether another way of running the echo is cheaper than cgi cannot be told: the differences \
             are less than the {} that clock ticks leave open; a larger --count tells more.",
            time_us(scale.resolution_us),
        ),
        _ => "No way of running the echo is cheaper than cgi here.".to_owned(),
    }
}

/// What keeping connections would save.
pub(crate) fn of_wire(wire: &WireCosts) -> String {
    let of = |name: &str| {
        let way = wire.ways.iter().find(|way| way.name.starts_with(name))?;
        way.figures.as_ref().ok()
    };
    let pairs = [
        ("HTTP/1.1, a", "HTTP/1.1, connection kept"),
        ("TLS, full", "TLS, connection kept"),
    ];
    let pair = pairs
        .iter()
        .find_map(|(each, kept)| Some((of(each)?, of(kept)?)));
    let Some((each, kept)) = pair else {
        return String::new();
    };
    let packets = |cost: &Cost| cost.packets.map_or(0.0, |packets| packets.0 + packets.1);
    format!(
        "A connection that is kept saves {} of {} round trips, {:.0} of {:.0} packets and {} of {} a \
         request.",
        each.round_trips - kept.round_trips,
        each.round_trips,
        packets(each) - packets(kept),
        packets(each),
        time_us(each.times.p50_us - kept.times.p50_us),
        time_us(each.times.p50_us),
    )
}

fn cores(cores: f64) -> String {
    match cores {
        few if few < 0.01 => format!("{few:.4}"),
        some => format!("{some:.2}"),
    }
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;
    use crate::load::ResponseTimes;
    use crate::processes::CpuUs;
    use crate::rungs::Rung;
    use crate::script::ScriptLanguage;

    fn measured(handler: &'static str, subject: RungProgram, cpu: f64) -> RungMeasurement {
        RungMeasurement {
            rung: Rung {
                handler,
                carrier: (handler == "resident").then_some("stream"),
                subject,
                language: ScriptLanguage::Python,
                file: PathBuf::from("/a.py"),
                route: Ok(String::new()),
            },
            figures: Ok(Figures {
                times: ResponseTimes {
                    p50_us: cpu,
                    p99_us: cpu,
                    mean_us: cpu,
                },
                cpu: CpuUs {
                    server: 0.0,
                    spawner: 0.0,
                    program: cpu,
                },
            }),
        }
    }

    fn at(rate: f64) -> Scale {
        let resolution_us = 1.0;
        Scale {
            rate,
            resolution_us,
        }
    }

    #[test]
    fn saving_within_what_ticks_leave_open_is_none() {
        let rungs = [
            measured("cgi", RungProgram::Script, 1000.0),
            measured("warm", RungProgram::Script, 400.0),
            measured("resident", RungProgram::Echo, 300.0),
        ];
        let coarse = Scale {
            rate: 1.0,
            resolution_us: 1000.0,
        };
        let text = sentence("a", &rungs, coarse);
        assert!(
            text.contains(
                "cannot be told: 1.00 ms and 400 us a request differ by less than the 1.00 ms"
            ),
            "{text}"
        );
        assert!(!sentence("a", &rungs[..1], coarse).contains("would be saved"));
        assert!(echo_sentence(&rungs, coarse).contains("cannot be told"));
    }

    #[test]
    fn saving_is_told_per_request_and_at_a_rate() {
        let rungs = [
            measured("cgi", RungProgram::Script, 11_000.0),
            measured("warm", RungProgram::Script, 1000.0),
            measured("resident", RungProgram::Echo, 10.0),
        ];
        assert_eq!(
            sentence("a.py", &rungs, at(50.0)),
            "Moving a.py from cgi to warm would save 10.0 ms of 11.0 ms of CPU time a request (91 %) \
             and 10.0 ms of 11.0 ms until the answer; at 50 requests a second that is 0.50 of a CPU."
        );
        assert!(echo_sentence(&rungs, at(1.0)).contains("from cgi to resident over stream"));
    }

    #[test]
    fn script_that_costs_more_kept_than_forked_is_named() {
        let rungs = [
            measured("cgi", RungProgram::Script, 11_000.0),
            measured("warm", RungProgram::Script, 1000.0),
            measured("resident", RungProgram::Script, 1500.0),
        ];
        let text = sentence("gitweb.cgi", &rungs, at(50.0));
        let told =
            " Kept (resident over stream), it costs more than that: 1.50 ms instead of 1.00 ms.";
        assert!(
            text.contains("from cgi to warm") && text.ends_with(told),
            "{text}"
        );
        let coarse = Scale {
            rate: 1.0,
            resolution_us: 600.0,
        };
        assert!(!sentence("gitweb.cgi", &rungs, coarse).contains("Kept"));
    }

    #[test]
    fn nothing_to_save_is_said() {
        let rungs = [
            measured("cgi", RungProgram::Script, 100.0),
            measured("warm", RungProgram::Script, 98.0),
        ];
        assert!(sentence("a", &rungs, at(1.0)).contains("would save nothing worth it"));
        assert_eq!(
            sentence("a", &rungs[..1], at(1.0)),
            "a runs only as cgi, so there is nothing to move it to."
        );
        assert!(sentence("a", &[], at(1.0)).contains("nothing can be said"));
        let with_echo = [
            measured("cgi", RungProgram::Script, 1000.0),
            measured("resident", RungProgram::Echo, 10.0),
        ];
        assert!(
            sentence("a", &with_echo, at(100.0)).contains("up to 0.10 of a CPU would be saved")
        );
    }
}
