//! Exit codes, as scripts see them.

use mainstay_cause::Cause;
use std::process::ExitCode;

/// How the program ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exit {
    /// Everything that was asked for is done (0).
    Done,
    /// Something failed while working (1).
    Failed,
    /// The arguments, or what they name (a folder, a port, a catalog), cannot be used (2).
    Usage,
    /// Everything was looked at, and something of it cannot be resolved (3).
    Unresolved,
    /// Everything resolves, and something would change, which was asked for (4).
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
