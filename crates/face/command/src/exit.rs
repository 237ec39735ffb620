//! Exit codes of the program.

use mainstay_cause::Cause;
use std::process::ExitCode;

/// The outcome of a command. A code means the same for every command; `docs/command-line.md` has the
/// table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExitStatus {
    /// The command succeeded and found nothing in the way (0).
    Done,
    /// The command failed (1): a cluster, a registry or a disk failed, or the validated content has
    /// errors.
    Failed,
    /// The command did not start (2): an argument, or the file, folder, port or object that it names,
    /// cannot be used.
    Usage,
    /// The command succeeded and found an obstacle for what the user asked about (3).
    Unresolved,
    /// The command succeeded, found no obstacle, and found changes that `--exit-code` reports (4).
    Changes,
}

/// The reason and the exit code of a failed sub-command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CommandFailure {
    /// The code.
    pub exit: ExitStatus,
    /// The reason.
    pub cause: Cause,
}

impl CommandFailure {
    /// An argument cannot be used.
    pub const fn usage(cause: Cause) -> Self {
        Self { exit: ExitStatus::Usage, cause }
    }
}

impl From<Cause> for CommandFailure {
    /// The command failed while it worked.
    fn from(cause: Cause) -> Self {
        Self { exit: ExitStatus::Failed, cause }
    }
}

impl From<ExitStatus> for ExitCode {
    fn from(exit: ExitStatus) -> Self {
        match exit {
            ExitStatus::Done => Self::SUCCESS,
            ExitStatus::Failed => Self::from(1),
            ExitStatus::Usage => Self::from(2),
            ExitStatus::Unresolved => Self::from(3),
            ExitStatus::Changes => Self::from(4),
        }
    }
}
