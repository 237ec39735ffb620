//! The tests' build: one fault at a time.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{LazyLock, PoisonError, RwLock};

/// The fault that a process is started with. Where it is set, nothing else is seeded before `seed` is called.
const VARIABLE: &str = "MAINSTAY_FAULT";

static SEEDED: LazyLock<RwLock<Option<String>>> = LazyLock::new(|| RwLock::new(given()));
/// So that places which are come by often do not wait for each other while nothing is seeded.
static ANY: LazyLock<AtomicBool> = LazyLock::new(|| AtomicBool::new(given().is_some()));
static MET: AtomicBool = AtomicBool::new(false);

#[expect(
    clippy::disallowed_methods,
    reason = "not in a release, and where tests run there is no configuration"
)]
fn given() -> Option<String> {
    std::env::var(VARIABLE).ok().filter(|name| !name.is_empty())
}

/// Whether a fault is seeded.
pub fn is_on(name: &str) -> bool {
    if !ANY.load(Ordering::Relaxed) {
        return false;
    }
    let seeded = SEEDED.read().unwrap_or_else(PoisonError::into_inner);
    let on = seeded.as_deref() == Some(name);
    if on {
        MET.store(true, Ordering::Relaxed);
    }
    on
}

/// Seeds a fault in the place of the one before, for the whole process; none for none.
pub fn seed(name: Option<&str>) {
    *SEEDED.write().unwrap_or_else(PoisonError::into_inner) = name.map(ToOwned::to_owned);
    MET.store(false, Ordering::Relaxed);
    ANY.store(name.is_some(), Ordering::Relaxed);
}

/// Whether anybody came by the place of the fault that is seeded.
pub fn was_met() -> bool {
    MET.load(Ordering::Relaxed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_fault_is_on_at_a_time_and_it_is_known_whether_it_was_met() {
        assert!(!is_on("a"));
        seed(Some("a"));
        assert!(!was_met() && !is_on("b") && !was_met());
        assert!(is_on("a") && was_met());
        seed(Some("b"));
        assert!(!was_met() && !is_on("a") && is_on("b"));
        seed(None);
        assert!(!is_on("a") && !is_on("b"));
    }
}
