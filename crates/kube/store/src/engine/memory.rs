//! The in-memory engine: no durability.

use super::{Engine, EngineError, Loader, OpenError, Recovery};
use crate::Event;
use std::sync::Arc;

/// The engine of a store in memory.
pub(crate) struct Memory;

impl Engine for Memory {
    fn load(&mut self, loader: &mut Loader) -> Result<Recovery, OpenError> {
        // The history is complete from the beginning.
        loader.begin_history(loader.revision());
        Ok(Recovery { revision: loader.revision(), ..Recovery::default() })
    }

    fn append(&mut self, _events: &[Arc<Event>]) -> Result<(), EngineError> {
        Ok(())
    }
}
