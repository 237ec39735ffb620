//! Commands that would write a database: their flags are judged as upstream does, and that is all.

use super::super::call::{Call, Failure};
use super::super::reference::{self, FlagConflict};

/// What upstream looks at before it begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Check {
    /// Whether flags about registries exclude each other.
    Security,
    /// Whether there is a mode of that name.
    Mode,
    /// Whether more authorities make sense.
    Authority,
    /// Whether the tools that pull and build go together.
    Tools,
    /// Whether the one tool can build.
    Tool,
    /// Whether packages are named by one flag only.
    Packages,
}

/// Flags of a command that would write a database do not go together.
#[derive(Debug, thiserror::Error)]
enum CheckError {
    /// Flags about registries exclude each other.
    #[error(transparent)]
    Security(#[from] FlagConflict),
    /// There is no mode of a name.
    #[error("Invalid channel update mode {mode} specified")]
    UnknownMode {
        /// The name.
        mode: String,
    },
    /// More authorities are given, and any certificate is taken.
    #[error("--skip-tls-verify must be false when --ca-file is set")]
    AuthorityUnverified,
    /// More authorities are given for a tool that has its own.
    #[error(
        "--ca-file cannot be set with --container-tool={tool}; certificates must be configured \
         specifically for {tool}"
    )]
    AuthorityOfTool {
        /// The tool.
        tool: &'static str,
    },
    /// The tool that builds cannot.
    #[error("none is not a valid container-tool for index add")]
    NoBuildTool,
    /// One tool is named, and a tool for each step.
    #[error("container-tool cannot be set alongside pull-tool or build-tool")]
    Tools,
    /// The one tool cannot build.
    #[error("none is not a valid container-tool for index prune")]
    NoTool,
    /// Packages are named by two flags.
    #[error("cannot simultaneously set '-p' and '-o' flags, remove '-o'")]
    Packages,
}

/// Makes the checks in their order, and refuses with `instead`.
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
            Self::Security => Ok(reference::security(call).map(drop)?),
            Self::Mode => {
                let mode = flags.text("mode");
                let known = ["replaces", "semver", "semver-skippatch"];
                if known.contains(&&*mode.to_lowercase()) {
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
