//! How long a resolution takes.

use mainstay_resolver::{Outcome, World, resolve};
use rustix::time::{ClockId, clock_gettime};

/// After this many milliseconds nothing is repeated any more.
const PATIENCE: f64 = 500.0;
/// How often a resolution is repeated at most.
const REPETITIONS: usize = 9;

/// What all threads of this process have used so far, user and system, in milliseconds.
fn used() -> f64 {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    // Milliseconds of a process fit into 52 bits.
    #[expect(clippy::cast_precision_loss, reason = "below 2^52 for thousands of years")]
    let (seconds, nanoseconds) = (time.tv_sec as f64, time.tv_nsec as f64);
    seconds * 1e3 + nanoseconds / 1e6
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
