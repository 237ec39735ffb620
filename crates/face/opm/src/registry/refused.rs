//! Commands that would write a database: their flags are judged as upstream does, and that is all.

use super::super::call::{Call, End};
use super::super::reference;

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

/// Makes the checks in their order, and refuses with `instead`.
///
/// # Errors
/// Always.
pub(super) fn refuse(call: &mut Call<'_, '_>, checks: &[Check], instead: &str) -> Result<(), End> {
    for check in checks {
        check.make(call).map_err(End::Usage)?;
    }
    Err(End::Fatal(instead.to_owned()))
}

impl Check {
    fn make(self, call: &Call<'_, '_>) -> Result<(), String> {
        let flags = &call.flags;
        let fail = |wrong: bool, why: &str| if wrong { Err(why.to_owned()) } else { Ok(()) };
        match self {
            Self::Security => reference::security(call).map(drop),
            Self::Mode => {
                let mode = flags.text("mode");
                let known = ["replaces", "semver", "semver-skippatch"];
                if known.contains(&&*mode.to_lowercase()) {
                    return Ok(());
                }
                Err(format!("Invalid channel update mode {mode} specified"))
            }
            Self::Authority if flags.text("ca-file").is_empty() => Ok(()),
            Self::Authority => {
                let unverified = flags.is_on("skip-tls-verify");
                fail(unverified, "--skip-tls-verify must be false when --ca-file is set")?;
                match flags.text("container-tool") {
                    tool @ ("docker" | "podman") => Err(format!(
                        "--ca-file cannot be set with --container-tool={tool}; certificates must be \
                         configured specifically for {tool}"
                    )),
                    _ => Ok(()),
                }
            }
            Self::Tools => {
                let (build, pull) = (flags.text("build-tool"), flags.text("pull-tool"));
                fail(build == "none", "none is not a valid container-tool for index add")?;
                let one = !flags.text("container-tool").is_empty();
                let two = !build.is_empty() || !pull.is_empty();
                fail(one && two, "container-tool cannot be set alongside pull-tool or build-tool")
            }
            Self::Tool => {
                let none = flags.text("container-tool") == "none";
                fail(none, "none is not a valid container-tool for index prune")
            }
            Self::Packages => {
                let both = flags.has("package") && flags.has("xpackage");
                fail(both, "cannot simultaneously set '-p' and '-o' flags, remove '-o'")
            }
        }
    }
}
