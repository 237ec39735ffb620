//! Problems of a value: violations of its type.

use super::path::Step;
use std::fmt;

/// A problem of a value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TypeProblem {
    /// The path, such as `.spec.ports`; empty for the whole object.
    pub path: String,
    /// The description.
    pub message: String,
}

/// All problems of a value, with the text of structured-merge-diff.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TypeProblems(Vec<TypeProblem>);

/// The most problems that are collected.
const MAX_PROBLEMS: usize = 10_000;
/// The most bytes of their paths: each part of a large value may have a problem, below a long name.
const MAX_PATH_BYTES: usize = 4 << 20;

impl fmt::Display for TypeProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.path.is_empty() {
            f.write_str(&self.message)
        } else {
            write!(f, "{}: {}", self.path, self.message)
        }
    }
}

impl TypeProblems {
    /// The problems, in the order of the traversal.
    pub fn all(&self) -> &[TypeProblem] {
        &self.0
    }

    /// The problems as an error, if there are any.
    pub(super) fn result(self) -> Result<(), Self> {
        if self.0.is_empty() { Ok(()) } else { Err(self) }
    }

    /// Adds a problem of the current value.
    pub(super) fn add(&mut self, message: impl Into<String>) {
        if self.0.len() < MAX_PROBLEMS {
            self.0.push(TypeProblem { path: String::new(), message: message.into() });
        }
    }

    /// Visits a value below the current one and prefixes its problems with their path element.
    pub(super) fn below<T>(
        &mut self,
        step: impl FnOnce() -> String,
        visit: impl FnOnce(&mut Self) -> T,
    ) -> T {
        let before = self.0.len();
        let found = visit(self);
        if self.0.len() > before {
            let step = step();
            self.0.truncate(before + (MAX_PATH_BYTES / step.len().max(1)).max(1));
            for problem in &mut self.0[before..] {
                problem.path.insert_str(0, &step);
            }
        }
        found
    }

    /// Visits a field of the current value.
    pub(super) fn field<T>(&mut self, name: &str, visit: impl FnOnce(&mut Self) -> T) -> T {
        self.below(|| Step::Field(name).to_string(), visit)
    }
}

impl fmt::Display for TypeProblems {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let [problem] = &self.0[..] {
            return problem.fmt(f);
        }
        f.write_str("errors:")?;
        self.0.iter().try_for_each(|problem| write!(f, "\n  {problem}"))
    }
}

impl std::error::Error for TypeProblems {}
