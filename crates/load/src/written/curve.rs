//! A histogram as the points of a curve.

use crate::measure::Latency;

/// Points of a curve of percentiles from one halving of what is left to the next.
const CURVE_STEPS_PER_HALVING: u32 = 8;

/// Percentiles and times, up to where a single request makes the difference.
pub(super) fn curve_of(times: &Latency) -> Vec<(f64, f64)> {
    let last = 100.0 - 100.0 / times.count().max(2) as f64;
    let steps = times.steps(CURVE_STEPS_PER_HALVING).into_iter();
    let points = steps.map(|(share, ns, _)| (share * 100.0, ns));
    let points = points.take_while(|(percent, _)| *percent < last);
    points.chain([(last, times.max() as f64)]).collect()
}
