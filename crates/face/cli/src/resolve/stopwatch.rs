//! How long a resolution takes.

use mainstay_clock::processor_time;
use mainstay_resolver::{Outcome, World, resolve};

/// After this many milliseconds nothing is repeated any more.
const PATIENCE: f64 = 500.0;
/// How often a resolution is repeated at most.
const REPETITIONS: usize = 9;

/// What this process has used so far, in milliseconds.
fn used() -> f64 {
    processor_time().as_secs_f64() * 1e3
}

/// Resolves, and says how many CPU milliseconds that takes: the median of up to nine
/// resolutions, of which the first is left out unless it is the only one.
pub(super) fn timed(world: &World<'_>) -> (Outcome, f64) {
    let begin = used();
    let outcome = resolve(world);
    let first = used() - begin;
    let mut all = Vec::new();
    while all.len() < REPETITIONS && used() - begin < PATIENCE {
        let before = used();
        let again = resolve(world);
        all.push(used() - before);
        drop(again);
    }
    all.sort_by(f64::total_cmp);
    let median = all.get(all.len() / 2).copied().unwrap_or(first);
    (outcome, (median * 1e4).round() / 1e4)
}
