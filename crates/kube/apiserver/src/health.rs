//! Readiness: green only when everything that must be up is up.

use parking_lot::Mutex;
use std::sync::Arc;

/// The gates that must be open before the server calls itself ready.
#[derive(Clone, Debug, Default)]
pub struct Readiness(Arc<Mutex<Vec<(String, bool)>>>);

/// One gate of a [`Readiness`]; closed until opened.
#[derive(Clone, Debug)]
pub struct Gate {
    readiness: Readiness,
    name: String,
}

impl Readiness {
    /// A gate of this name, made closed if it is new.
    pub fn gate(&self, name: &str) -> Gate {
        let mut gates = self.0.lock();
        if !gates.iter().any(|(one, _)| one == name) {
            gates.push((name.to_owned(), false));
        }
        Gate { readiness: self.clone(), name: name.to_owned() }
    }

    /// Whether all gates are open.
    pub fn is_ready(&self) -> bool {
        self.0.lock().iter().all(|(_, open)| *open)
    }
}

impl Gate {
    /// Opens the gate.
    pub fn open(&self) {
        for (name, open) in self.readiness.0.lock().iter_mut() {
            *open |= *name == self.name;
        }
    }
}
