//! Data paths of nodes, by which a schema determines sizes.

use std::cell::RefCell;
use std::rc::Rc;

/// A path: a variable, then names of fields, `@items`, `@keys`, `@values`, `@indices`.
///
/// cel-go extends a path with Go's `append`, which writes into the spare capacity of the shorter
/// one. Two paths that extend the same one (`x.a` and `x.b` in a loop over `x`) may then share
/// memory, and the later one overwrites the earlier. Estimates are API, so this type does the same.
#[derive(Clone, Debug, Default)]
pub(super) struct Path<'c> {
    shared: Rc<RefCell<SharedSteps<'c>>>,
    len: usize,
}

#[derive(Debug, Default)]
struct SharedSteps<'c> {
    steps: Vec<&'c str>,
    /// The capacity of the Go slice.
    capacity: usize,
}

impl<'c> Path<'c> {
    /// A variable.
    pub(super) fn variable(name: &'c str) -> Self {
        Self {
            shared: Rc::new(RefCell::new(SharedSteps { steps: vec![name], capacity: 1 })),
            len: 1,
        }
    }

    /// The path with one more step.
    pub(super) fn then(&self, step: &'c str) -> Self {
        let mut shared = self.shared.borrow_mut();
        if self.len < shared.capacity {
            match shared.steps.get_mut(self.len) {
                Some(slot) => *slot = step,
                None => shared.steps.push(step),
            }
            return Self { shared: Rc::clone(&self.shared), len: self.len + 1 };
        }
        let mut steps = Vec::with_capacity(self.len + 1);
        steps.extend_from_slice(&shared.steps[..self.len]);
        steps.push(step);
        let capacity = (shared.capacity * 2).max(1);
        Self { shared: Rc::new(RefCell::new(SharedSteps { steps, capacity })), len: self.len + 1 }
    }

    /// Whether it has no steps.
    pub(super) const fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Calls `read` with all steps and an optional last one.
    pub(super) fn with<T>(
        &self,
        last_step: Option<&'c str>,
        read: impl FnOnce(&[&'c str]) -> T,
    ) -> T {
        let shared = self.shared.borrow();
        match last_step {
            None => read(&shared.steps[..self.len]),
            Some(last_step) => {
                let steps: Vec<_> =
                    shared.steps[..self.len].iter().copied().chain([last_step]).collect();
                read(&steps)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Path;

    #[test]
    fn a_longer_path_overwrites_steps_that_it_shares() {
        let steps = |path: &Path<'_>| path.with(None, |steps| steps.join("."));
        let element = Path::variable("self").then("list").then("@items");
        let one = element.then("a");
        assert_eq!(steps(&one), "self.list.@items.a");
        let other = element.then("b");
        assert_eq!((steps(&one), steps(&other)), (steps(&other), "self.list.@items.b".to_owned()));
        let deeper = one.then("c");
        assert_eq!(steps(&deeper), "self.list.@items.b.c");
        element.then("d");
        assert_eq!(steps(&deeper), "self.list.@items.b.c", "it had no room left and moved");
        assert_eq!(steps(&Path::default().then("@items")), "@items");
    }
}
