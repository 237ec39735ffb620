//! Unsupported commands, which would write a database: they check their flags as upstream does, and fail.

use super::super::call::{Call, Failure};
use super::super::reference::{self, FlagConflict};

/// A check of upstream before the work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Check {
    /// Registry flags are not mutually exclusive.
    Security,
    /// The mode is known.
    Mode,
    /// Additional certificate authorities are usable.
    Authority,
    /// The pull tool and the build tool are compatible.
    Tools,
    /// The container tool can build.
    Tool,
    /// Only one flag names packages.
    Packages,
}

/// The flags of an unsupported command are incompatible.
#[derive(Debug, thiserror::Error)]
enum CheckError {
    /// Registry flags are mutually exclusive.
    #[error(transparent)]
    Security(#[from] FlagConflict),
    /// The mode is unknown.
    #[error("Invalid channel update mode {mode} specified")]
    UnknownMode {
        /// The name.
        mode: String,
    },
    /// Additional authorities are given, and any certificate is accepted.
    #[error("--skip-tls-verify must be false when --ca-file is set")]
    AuthorityUnverified,
    /// Additional authorities are given for a tool that has its own.
    #[error(
        "--ca-file cannot be set with --container-tool={tool}; certificates must be configured \
         specifically for {tool}"
    )]
    AuthorityOfTool {
        /// The tool.
        tool: &'static str,
    },
    /// The build tool cannot build.
    #[error("none is not a valid container-tool for index add")]
    NoBuildTool,
    /// Both one tool and a tool for each step are given.
    #[error("container-tool cannot be set alongside pull-tool or build-tool")]
    Tools,
    /// The container tool cannot build.
    #[error("none is not a valid container-tool for index prune")]
    NoTool,
    /// Two flags name packages.
    #[error("cannot simultaneously set '-p' and '-o' flags, remove '-o'")]
    Packages,
}

/// Runs the checks in order, then fails with `instead`.
///
/// # Errors
/// Always.
pub(super) fn fail_unsupported(
    call: &mut Call<'_, '_>,
    checks: &[Check],
    instead: &str,
) -> Result<(), Failure> {
    for check in checks {
        check.run(call).map_err(Failure::usage)?;
    }
    Err(Failure::Fatal(instead.to_owned()))
}

impl Check {
    fn run(self, call: &Call<'_, '_>) -> Result<(), CheckError> {
        let flags = &call.flags;
        let fail = |wrong: bool, error| if wrong { Err(error) } else { Ok(()) };
        match self {
            Self::Security => Ok(reference::registry_access(call).map(drop)?),
            Self::Mode => {
                let mode = flags.text("mode");
                let modes = ["replaces", "semver", "semver-skippatch"];
                if modes.contains(&&*mode.to_lowercase()) {
                    return Ok(());
                }
                Err(CheckError::UnknownMode { mode: mode.to_owned() })
            }
            Self::Authority if flags.text("ca-file").is_empty() => Ok(()),
            Self::Authority => {
                let unverified = flags.is_on("skip-tls-verify");
                fail(unverified, CheckError::AuthorityUnverified)?;
                match flags.text("container-tool") {
                    "docker" => Err(CheckError::AuthorityOfTool { tool: "docker" }),
                    "podman" => Err(CheckError::AuthorityOfTool { tool: "podman" }),
                    _ => Ok(()),
                }
            }
            Self::Tools => {
                let (build, pull) = (flags.text("build-tool"), flags.text("pull-tool"));
                fail(build == "none", CheckError::NoBuildTool)?;
                let one = !flags.text("container-tool").is_empty();
                let two = !build.is_empty() || !pull.is_empty();
                fail(one && two, CheckError::Tools)
            }
            Self::Tool => {
                let none = flags.text("container-tool") == "none";
                fail(none, CheckError::NoTool)
            }
            Self::Packages => {
                let both = flags.has("package") && flags.has("xpackage");
                fail(both, CheckError::Packages)
            }
        }
    }
}
