//! CPU time of a resolution.

use mainstay_clock::processor_time;
use mainstay_resolver::{Resolution, ResolutionInput, resolve};

/// No repetition starts after this time, in milliseconds.
const BUDGET_MS: f64 = 500.0;
/// The largest number of repetitions.
const MAX_REPETITIONS: usize = 9;

/// The CPU time of this process, in milliseconds.
fn cpu_time_ms() -> f64 {
    processor_time().as_secs_f64() * 1e3
}

/// Resolves, and measures the CPU time in milliseconds: the median of up to nine resolutions. The first
/// one only counts if it is the only one.
pub(super) fn resolve_timed(input: &ResolutionInput<'_>) -> (Resolution, f64) {
    let start = cpu_time_ms();
    let outcome = resolve(input);
    let first = cpu_time_ms() - start;
    let mut times = Vec::new();
    while times.len() < MAX_REPETITIONS && cpu_time_ms() - start < BUDGET_MS {
        let before = cpu_time_ms();
        let repeated = resolve(input);
        times.push(cpu_time_ms() - before);
        drop(repeated);
    }
    times.sort_by(f64::total_cmp);
    let median = times.get(times.len() / 2).copied().unwrap_or(first);
    (outcome, (median * 1e4).round() / 1e4)
}
