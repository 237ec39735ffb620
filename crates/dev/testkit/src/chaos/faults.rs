//! Faults of requests.

use crate::{InjectedFault, ObservedRequest};
use std::time::Duration;

/// A pseudo-random number that depends only on its arguments.
fn pseudo_random(seed: u64, number: usize, salt: u64) -> u64 {
    // The mixing function of splitmix64, which is fast and spreads similar inputs.
    let mut hash = seed
        .wrapping_mul(0x9E37_79B9_7F4A_7C15)
        .wrapping_add((number as u64).wrapping_mul(0xBF58_476D_1CE4_E5B9))
        .wrapping_add(salt.wrapping_mul(0x94D0_49BB_1331_11EB));
    hash = (hash ^ (hash >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    hash = (hash ^ (hash >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    hash ^ (hash >> 31)
}

/// The number of requests with faults; an undisturbed run has fewer requests.
const FAULTY_REQUESTS: usize = 400;

/// What happens to a request on a bad connection: one in three has a fault.
pub(super) fn random_fault(seed: u64, request: &ObservedRequest) -> InjectedFault {
    let draw = |salt| pseudo_random(seed, request.number, salt);
    // A number below four fits.
    let one_of_four = || usize::try_from(draw(3) % 4).unwrap_or_default();
    if request.number > FAULTY_REQUESTS || !draw(0).is_multiple_of(3) {
        return InjectedFault::Pass;
    }
    let time = Duration::from_millis(draw(1) % 20);
    if request.is_watch() {
        return match draw(2) % 4 {
            0 => InjectedFault::ConnectionLost,
            1 => InjectedFault::TruncatedResponse(one_of_four()),
            2 => InjectedFault::Delayed(time),
            _ => InjectedFault::SlowResponse(time),
        };
    }
    match draw(2) % 6 {
        0 => InjectedFault::ConnectionLost,
        1 => InjectedFault::ResponseLost,
        2 => InjectedFault::Refused([429, 500, 503, 504][one_of_four()]),
        3 if request.is_write() => InjectedFault::SentTwice,
        _ => InjectedFault::Delayed(time),
    }
}

/// The fault of one request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fault {
    /// The connection refuses the request.
    Fails,
    /// The request or its response is delayed.
    Delayed,
    /// The request arrives twice.
    Duplicated,
    /// Later requests overtake the request.
    Reordered,
    /// The request is lost.
    Dropped,
    /// The response is lost.
    Unanswered,
}

impl Fault {
    pub(super) const ALL: [Self; 6] = [
        Self::Fails,
        Self::Delayed,
        Self::Duplicated,
        Self::Reordered,
        Self::Dropped,
        Self::Unanswered,
    ];

    pub(super) fn injected(self, request: &ObservedRequest) -> InjectedFault {
        match self {
            Self::Fails => InjectedFault::Refused([429, 500, 503, 504][request.number / 7 % 4]),
            Self::Delayed if request.is_watch() => {
                InjectedFault::SlowResponse(Duration::from_millis(10))
            }
            Self::Delayed => InjectedFault::Delayed(Duration::from_millis(30)),
            Self::Duplicated => InjectedFault::SentTwice,
            Self::Reordered => InjectedFault::Overtaken(4),
            Self::Dropped => InjectedFault::ConnectionLost,
            Self::Unanswered if request.is_watch() => InjectedFault::TruncatedResponse(1),
            Self::Unanswered => InjectedFault::ResponseLost,
        }
    }
}
