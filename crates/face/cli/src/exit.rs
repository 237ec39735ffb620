//! Exit codes, as scripts see them.

use mainstay_cause::Cause;
use std::process::ExitCode;

/// How the program ended. Every command means the same by a code; `docs/command-line.md` has the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exit {
    /// Done, and nothing is in the way (0).
    Done,
    /// It was tried and did not succeed (1): a cluster, a registry or a disk does not do its part, or what
    /// was judged has errors.
    Failed,
    /// It was not begun (2): the arguments, or what they name (a file, a folder, a port, an object),
    /// cannot be used.
    Usage,
    /// Everything was looked at, and something is in the way of what was asked about (3).
    Unresolved,
    /// Nothing is in the way, and something would change, which was asked for (4).
    Changes,
}

/// Why a sub-command ended early, and with which code.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// The code.
    pub exit: Exit,
    /// The reason.
    pub cause: Cause,
}

impl Failure {
    /// What was asked for cannot be used.
    pub const fn usage(cause: Cause) -> Self {
        Self { exit: Exit::Usage, cause }
    }
}

impl From<Cause> for Failure {
    /// Something failed while working.
    fn from(cause: Cause) -> Self {
        Self { exit: Exit::Failed, cause }
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        match exit {
            Exit::Done => Self::SUCCESS,
            Exit::Failed => Self::from(1),
            Exit::Usage => Self::from(2),
            Exit::Unresolved => Self::from(3),
            Exit::Changes => Self::from(4),
        }
    }
}
