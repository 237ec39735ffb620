//! `opm version`.

use super::call::{Call, Failure};
use super::command::{Action, Command};
use super::go;

/// The command.
pub(super) fn command() -> Command {
    Command { action: Some(Action::Sync(run)), ..Command::new("version", "Print the version") }
}

/// Prints one line in Go's struct notation, which scripts parse.
#[expect(clippy::unnecessary_wraps, reason = "an action")]
fn run(call: &mut Call<'_, '_>) -> Result<(), Failure> {
    let architecture = match std::env::consts::ARCH {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        other => other,
    };
    let system = match std::env::consts::OS {
        "macos" => "darwin",
        other => other,
    };
    call.io.print(&format!(
        "Version: version.Version{{OpmVersion:{}, GitCommit:\"\", BuildDate:\"\", GoOs:{}, GoArch:{}}}\n",
        go::quote(concat!("mainstay-", env!("CARGO_PKG_VERSION"))),
        go::quote(system),
        go::quote(architecture),
    ));
    Ok(())
}
