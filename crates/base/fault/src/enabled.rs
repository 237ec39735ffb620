//! Seeded faults in a build with debug assertions: one at a time.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{LazyLock, PoisonError, RwLock};

/// The environment variable with the fault of a process. It holds until `seed` is called.
const VARIABLE: &str = "MAINSTAY_FAULT";

static SEEDED: LazyLock<RwLock<Option<String>>> =
    LazyLock::new(|| RwLock::new(fault_of_environment()));
/// Whether any fault is seeded. Without it, hot code would wait for the lock.
static ANY: LazyLock<AtomicBool> =
    LazyLock::new(|| AtomicBool::new(fault_of_environment().is_some()));
static REACHED: AtomicBool = AtomicBool::new(false);

#[expect(
    clippy::disallowed_methods,
    reason = "not in a release, and where tests run there is no configuration"
)]
fn fault_of_environment() -> Option<String> {
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
        REACHED.store(true, Ordering::Relaxed);
    }
    on
}

/// Seeds a fault for the whole process and removes the one before; `None` only removes.
pub fn seed(name: Option<&str>) {
    *SEEDED.write().unwrap_or_else(PoisonError::into_inner) = name.map(ToOwned::to_owned);
    REACHED.store(false, Ordering::Relaxed);
    ANY.store(name.is_some(), Ordering::Relaxed);
}

/// Whether the code of the seeded fault was reached.
pub fn was_reached() -> bool {
    REACHED.load(Ordering::Relaxed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_fault_is_on_at_a_time_and_was_reached_reports_it() {
        assert!(!is_on("a"));
        seed(Some("a"));
        assert!(!was_reached() && !is_on("b") && !was_reached());
        assert!(is_on("a") && was_reached());
        seed(Some("b"));
        assert!(!was_reached() && !is_on("a") && is_on("b"));
        seed(None);
        assert!(!is_on("a") && !is_on("b"));
    }
}
