//! Where in the data a node looks, so that a schema can say how much there can be.

use std::cell::RefCell;
use std::rc::Rc;

/// A path: a variable, then names of fields, `@items`, `@keys`, `@values`, `@indices`.
///
/// cel-go makes a longer path of a shorter one with Go's `append`, which writes behind the shorter
/// one where it has room. Two paths that continue the same one (`x.a` and `x.b` in a loop over
/// `x`) may then share that room, and the later one changes the earlier. Estimates are API, so
/// this is what happens here, too.
#[derive(Clone, Debug, Default)]
pub(super) struct Path<'c> {
    room: Rc<RefCell<Room<'c>>>,
    len: usize,
}

#[derive(Debug, Default)]
struct Room<'c> {
    steps: Vec<&'c str>,
    /// How many steps there is room for, as Go grows it.
    capacity: usize,
}

impl<'c> Path<'c> {
    /// A variable.
    pub(super) fn variable(name: &'c str) -> Self {
        Self { room: Rc::new(RefCell::new(Room { steps: vec![name], capacity: 1 })), len: 1 }
    }

    /// One step more.
    pub(super) fn then(&self, step: &'c str) -> Self {
        let mut room = self.room.borrow_mut();
        if self.len < room.capacity {
            match room.steps.get_mut(self.len) {
                Some(taken) => *taken = step,
                None => room.steps.push(step),
            }
            return Self { room: Rc::clone(&self.room), len: self.len + 1 };
        }
        let mut steps = Vec::with_capacity(self.len + 1);
        steps.extend_from_slice(&room.steps[..self.len]);
        steps.push(step);
        let capacity = (room.capacity * 2).max(1);
        Self { room: Rc::new(RefCell::new(Room { steps, capacity })), len: self.len + 1 }
    }

    /// Whether it is the path of nothing.
    pub(super) const fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// All steps, and one more.
    pub(super) fn with<T>(&self, more: Option<&'c str>, read: impl FnOnce(&[&'c str]) -> T) -> T {
        let room = self.room.borrow();
        match more {
            None => read(&room.steps[..self.len]),
            Some(more) => {
                let steps: Vec<_> = room.steps[..self.len].iter().copied().chain([more]).collect();
                read(&steps)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Path;

    #[test]
    fn a_longer_path_writes_into_room_that_it_shares() {
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
