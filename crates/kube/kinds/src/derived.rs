//! Cache of values that other crates derive from a kind, a version or a snapshot.
//!
//! Documents, discovery and conversion derive values whose types are not part of this crate. The
//! cache is a field of their source, so values live as long as the source and are never stale.

use parking_lot::Mutex;
use std::any::{Any, TypeId};
use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

/// One value of each type, made when it is first needed.
#[derive(Default)]
pub struct Derived(Mutex<HashMap<TypeId, Arc<dyn Any + Send + Sync>>>);

impl Derived {
    /// The value of a type. `make` runs under a lock: an expensive value belongs in a `OnceLock`
    /// inside the type.
    pub fn get_or_init<T: Any + Send + Sync>(&self, make: impl FnOnce() -> T) -> Arc<T> {
        let mut values = self.0.lock();
        if let Some(Ok(value)) =
            values.get(&TypeId::of::<T>()).map(|value| Arc::clone(value).downcast::<T>())
        {
            return value;
        }
        let value = Arc::new(make());
        values.insert(TypeId::of::<T>(), Arc::<T>::clone(&value));
        value
    }
}

impl fmt::Debug for Derived {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} derived values", self.0.lock().len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_is_made_once_for_each_type() {
        let derived = Derived::default();
        assert_eq!(*derived.get_or_init(|| 1_u8), 1);
        assert_eq!(*derived.get_or_init(|| 2_u8), 1);
        assert_eq!(*derived.get_or_init(|| 3_u16), 3);
    }
}
