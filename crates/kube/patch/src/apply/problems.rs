//! What is wrong with a value, as far as its type knows.

use super::path::Step;
use std::fmt;

/// Something that is wrong with a value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// Where, such as `.spec.ports`; empty for the whole object.
    pub path: String,
    /// What.
    pub message: String,
}

/// All that is wrong with a value, displayed as the original displays it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Problems(Vec<Problem>);

/// How many problems are kept, and how many bytes their paths may have: a value of any size may
/// have one in each of its parts, below a name of any length.
const MOST: usize = 10_000;
const MAX_PATHS: usize = 4 << 20;

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.path.is_empty() {
            f.write_str(&self.message)
        } else {
            write!(f, "{}: {}", self.path, self.message)
        }
    }
}

impl Problems {
    /// The problems, in the order in which they were found.
    pub fn all(&self) -> &[Problem] {
        &self.0
    }

    /// Nothing, or the problems.
    pub(super) fn result(self) -> Result<(), Self> {
        if self.0.is_empty() { Ok(()) } else { Err(self) }
    }

    /// Adds a problem of the value that is being visited.
    pub(super) fn add(&mut self, message: impl Into<String>) {
        if self.0.len() < MOST {
            self.0.push(Problem { path: String::new(), message: message.into() });
        }
    }

    /// Runs a visit of what is below the value that is being visited; its problems get their place.
    pub(super) fn below<T>(
        &mut self,
        step: impl FnOnce() -> String,
        visit: impl FnOnce(&mut Self) -> T,
    ) -> T {
        let before = self.0.len();
        let found = visit(self);
        if self.0.len() > before {
            let step = step();
            self.0.truncate(before + (MAX_PATHS / step.len().max(1)).max(1));
            for problem in &mut self.0[before..] {
                problem.path.insert_str(0, &step);
            }
        }
        found
    }

    /// The same for a field.
    pub(super) fn field<T>(&mut self, name: &str, visit: impl FnOnce(&mut Self) -> T) -> T {
        self.below(|| Step::Field(name).to_string(), visit)
    }
}

impl fmt::Display for Problems {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let [problem] = &self.0[..] {
            return problem.fmt(f);
        }
        f.write_str("errors:")?;
        self.0.iter().try_for_each(|problem| write!(f, "\n  {problem}"))
    }
}

impl std::error::Error for Problems {}
