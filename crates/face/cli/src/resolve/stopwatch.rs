//! How long a resolution takes.

use mainstay_clock::processor_time;
use mainstay_resolver::{Outcome, World, resolve};

/// After this many milliseconds nothing is repeated any more.
const BUDGET_MS: f64 = 500.0;
/// How often a resolution is repeated at most.
const MAX_REPETITIONS: usize = 9;

/// What this process has used so far, in milliseconds.
fn cpu_time_ms() -> f64 {
    processor_time().as_secs_f64() * 1e3
}

/// Resolves, and says how many CPU milliseconds that takes: the median of up to nine
/// resolutions, of which the first is left out unless it is the only one.
pub(super) fn resolve_timed(world: &World<'_>) -> (Outcome, f64) {
    let start = cpu_time_ms();
    let outcome = resolve(world);
    let first = cpu_time_ms() - start;
    let mut times = Vec::new();
    while times.len() < MAX_REPETITIONS && cpu_time_ms() - start < BUDGET_MS {
        let before = cpu_time_ms();
        let repeated = resolve(world);
        times.push(cpu_time_ms() - before);
        drop(repeated);
    }
    times.sort_by(f64::total_cmp);
    let median = times.get(times.len() / 2).copied().unwrap_or(first);
    (outcome, (median * 1e4).round() / 1e4)
}
