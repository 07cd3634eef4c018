//! One axis of a chart: what it shows, how values are laid along it, where its ticks are.

use super::number::Unit;

/// How values are laid along an axis.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scale {
    /// Evenly, from zero.
    Linear,
    /// Each factor the same length; values must be above zero, others are left out.
    Log,
    /// Percentiles from 0 to below 100: each further nine has the same length.
    Percentile,
}

/// An axis.
#[derive(Debug, Clone, PartialEq)]
pub struct Axis {
    pub(super) title: String,
    pub(super) unit: Unit,
    pub(super) scale: Scale,
}

impl Axis {
    /// An axis of a linear scale.
    pub fn new(title: impl Into<String>, unit: Unit) -> Axis {
        Axis {
            title: title.into(),
            unit,
            scale: Scale::Linear,
        }
    }

    /// With another scale.
    pub fn scale(mut self, scale: Scale) -> Axis {
        self.scale = scale;
        self
    }
}

/// Nines that a percentile axis shows at most.
const NINE_COUNT_MAX: f64 = 6.0;

/// A scale with its ends: values become shares of the length.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Ruler {
    scale: Scale,
    low: f64,
    high: f64,
    /// Where ticks are, in values.
    pub(super) ticks: Vec<f64>,
}

impl Ruler {
    /// A ruler that holds all these values, with about so many ticks.
    pub(super) fn over(
        scale: Scale,
        values: impl Iterator<Item = f64>,
        tick_count: usize,
    ) -> Ruler {
        let usable = values.filter(|value| has_place(scale, *value));
        let (mut low, mut high) = (f64::INFINITY, f64::NEG_INFINITY);
        for value in usable {
            low = low.min(value);
            high = high.max(value);
        }
        match scale {
            Scale::Linear => Ruler::linear(low.min(0.0), high.max(0.0), tick_count),
            Scale::Log => Ruler::log(low, high, tick_count),
            Scale::Percentile => Ruler::percentile(high),
        }
    }

    fn linear(low: f64, high: f64, tick_count: usize) -> Ruler {
        let (low, high) = if low < high { (low, high) } else { (0.0, 1.0) };
        let step = round_step((high - low) / tick_count.max(1) as f64);
        let (first, last) = ((low / step).floor(), (high / step).ceil());
        let ticks = (first as i64..=last as i64).map(|index| index as f64 * step);
        Ruler {
            scale: Scale::Linear,
            low: first * step,
            high: last * step,
            ticks: ticks.collect(),
        }
    }

    fn log(low: f64, high: f64, tick_count: usize) -> Ruler {
        let (low, high) = if low.is_finite() {
            (low, high)
        } else {
            (1.0, 10.0)
        };
        let (first, mut last) = (low.log10().floor() as i32, high.log10().ceil() as i32);
        if first == last {
            last += 1;
        }
        let stride = ((last - first) as usize).div_ceil(tick_count.max(1)).max(1);
        let has_halves = ((last - first) as usize) * 3 <= tick_count + 2;
        let mut ticks = Vec::new();
        for power in (first..=last).step_by(stride) {
            let whole = 10f64.powi(power);
            ticks.push(whole);
            if has_halves && power < last {
                ticks.extend([whole * 2.0, whole * 5.0]);
            }
        }
        // From the last tick that is not above the lowest value to the first above the highest.
        let from = ticks.iter().rposition(|tick| *tick <= low).unwrap_or(0);
        let to = ticks.iter().position(|tick| *tick >= high);
        let to = to.unwrap_or(ticks.len() - 1).max(from + 1);
        let ticks = ticks.get(from..=to).unwrap_or(&ticks).to_vec();
        Ruler {
            scale: Scale::Log,
            low: ticks[0],
            high: ticks[ticks.len() - 1],
            ticks,
        }
    }

    fn percentile(high: f64) -> Ruler {
        let nines = if high.is_finite() { nines(high) } else { 2.0 };
        let nines = nines.clamp(1.0, NINE_COUNT_MAX);
        let mut ticks = vec![0.0, 50.0];
        for count in 1..=nines.floor() as i32 {
            ticks.push(100.0 - 100.0 * 0.1f64.powi(count));
        }
        Ruler {
            scale: Scale::Percentile,
            low: 0.0,
            high: nines,
            ticks,
        }
    }

    /// Where a value is, from 0 to 1; none where it has no place.
    pub(super) fn share(&self, value: f64) -> Option<f64> {
        if !has_place(self.scale, value) {
            return None;
        }
        let share = match self.scale {
            Scale::Linear => (value - self.low) / (self.high - self.low),
            Scale::Log => (value / self.low).ln() / (self.high / self.low).ln(),
            Scale::Percentile => nines(value) / self.high,
        };
        Some(share.clamp(0.0, 1.0))
    }
}

fn has_place(scale: Scale, value: f64) -> bool {
    match scale {
        Scale::Linear => value.is_finite(),
        Scale::Log => value.is_finite() && value > 0.0,
        Scale::Percentile => (0.0..=100.0).contains(&value),
    }
}

/// How many nines a percentile has: 90 one, 99 two.
fn nines(percent: f64) -> f64 {
    (-(1.0 - percent / 100.0)
        .max(0.1f64.powf(NINE_COUNT_MAX))
        .log10())
    .max(0.0)
}

/// 1, 2 or 5 times a power of ten, not below a step.
fn round_step(step: f64) -> f64 {
    let power = 10f64.powf(step.log10().floor());
    let rounds = [1.0, 2.0, 5.0, 10.0];
    let found = rounds.iter().find(|round| *round * power >= step * 0.999);
    found.unwrap_or(&10.0) * power
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn linear_ticks_are_round_and_hold_all_values() {
        let ruler = Ruler::over(Scale::Linear, [3.0, 97.0].into_iter(), 5);
        assert_eq!(ruler.ticks, [0.0, 20.0, 40.0, 60.0, 80.0, 100.0]);
        assert_eq!(ruler.share(50.0), Some(0.5));
        assert_eq!(ruler.share(f64::NAN), None);
    }

    #[test]
    fn log_ticks_are_powers_of_ten() {
        let ruler = Ruler::over(Scale::Log, [0.0, 30.0, 2e5].into_iter(), 5);
        assert_eq!(ruler.ticks.first(), Some(&10.0));
        assert_eq!(ruler.ticks.last(), Some(&1e6));
        assert_eq!(ruler.share(0.0), None);
        assert_eq!(ruler.share(10.0), Some(0.0));
        let narrow = Ruler::over(Scale::Log, [110.0, 120.0].into_iter(), 5);
        assert_eq!(narrow.ticks, [100.0, 200.0]);
    }

    #[test]
    fn percentiles_have_a_step_for_each_nine() {
        let ruler = Ruler::over(Scale::Percentile, [0.0, 99.95].into_iter(), 5);
        assert_eq!(ruler.ticks.len(), 5);
        let at = |percent| ruler.share(percent).unwrap();
        assert!((at(99.9) - at(99.0) - (at(99.0) - at(90.0))).abs() < 1e-9);
        assert_eq!(ruler.share(101.0), None);
    }

    #[test]
    fn no_values_make_an_axis_all_the_same() {
        for scale in [Scale::Linear, Scale::Log, Scale::Percentile] {
            let ruler = Ruler::over(scale, std::iter::empty(), 5);
            assert!(ruler.ticks.len() >= 2, "{scale:?}");
            let same = Ruler::over(scale, std::iter::repeat_n(5.0, 3), 5);
            assert!(same.share(5.0).unwrap().is_finite(), "{scale:?}");
        }
    }
}
