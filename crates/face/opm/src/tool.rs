//! Container tools: docker and podman.

use super::call::CommandIo;
use super::go;
use super::log::{self, Level};
use super::reference::RegistryAccess;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// A container tool.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Tool(&'static str);

/// The failure of a program.
#[derive(Debug)]
pub(crate) struct ToolFailure {
    /// The reason, with the text of Go's library.
    pub(crate) why: String,
    /// Its standard output.
    pub(crate) stdout: String,
    /// Its standard error.
    pub(crate) stderr: String,
}

impl ToolFailure {
    fn all(&self) -> String {
        format!("{}{}", self.stdout, self.stderr)
    }
}

/// A container tool failed to unpack an image.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ToolError {
    /// The pull failed.
    #[error("error pulling image: {}. {}", .0.all(), .0.why)]
    Pull(ToolFailure),
    /// The container could not be created.
    #[error("error creating container {}: {}: {}", .0.stdout, .0.why, .0.stderr)]
    Create(ToolFailure),
    /// The files of the container could not be copied.
    #[error("error copying container directory {}: {}", .0.all(), .0.why)]
    Copy(ToolFailure),
    /// The container could not be removed.
    #[error("error removing container {}: {}", .0.all(), .0.why)]
    Remove(ToolFailure),
}

impl Tool {
    /// The tool of a name.
    pub(crate) fn from_name(name: &str) -> Option<Self> {
        ["docker", "podman"].into_iter().find(|tool| *tool == name).map(Self)
    }

    /// Pulls an image and copies its files to a folder, like upstream. Docker has its own settings for
    /// registries; a warning says so.
    ///
    /// # Errors
    /// The failed step, with the output of the tool.
    pub(crate) fn unpack(
        self,
        io: &mut CommandIo<'_>,
        image: &str,
        folder: &Path,
        access: RegistryAccess,
    ) -> Result<(), ToolError> {
        let fields = [("container-tool", self.0)];
        let mut pull = vec!["pull", image];
        match (access, self.0) {
            (RegistryAccess::Verified, _) => {}
            (_, "podman") => pull.insert(1, "--tls-verify=false"),
            _ => {
                let message = "--use-http and --skip-tls-verify have no effect on docker: make the registry an \
                            insecure one of its daemon, or use --image-builder none";
                log::write(io, Level::Warning, message, &fields);
            }
        }
        let message = format!("running {} {}", self.0, pull.join(" "));
        log::write(io, Level::Info, &message, &fields);
        self.run(io, &pull).map_err(|ended| {
            log::write(io, Level::Error, &ended.all(), &fields);
            ToolError::Pull(ended)
        })?;
        log::write(io, Level::Info, &format!("running {} create", self.0), &fields);
        let created = self.run(io, &["create", image, ""]).map_err(ToolError::Create)?;
        let id = created.trim_end_matches('\n').to_owned();
        log::write(io, Level::Info, &format!("running {} cp", self.0), &fields);
        let target = folder.to_string_lossy();
        let copied = self.run(io, &["cp", &format!("{id}:/."), &target]);
        log::write(io, Level::Info, &format!("running {} rm", self.0), &fields);
        let removed = self.run(io, &["rm", &id]);
        let mut log_error =
            |ended: &ToolFailure| log::write(io, Level::Error, &ended.all(), &fields);
        copied.inspect_err(&mut log_error).map_err(ToolError::Copy)?;
        removed.inspect_err(&mut log_error).map_err(ToolError::Remove)?;
        Ok(())
    }

    fn run(self, io: &CommandIo<'_>, arguments: &[&str]) -> Result<String, ToolFailure> {
        let output = run_program(io, self.0, arguments)?;
        let stdout = String::from_utf8_lossy(&output.stdout).into_owned();
        match exit_reason(&output) {
            None => Ok(stdout),
            Some(why) => {
                let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
                Err(ToolFailure { why, stdout, stderr })
            }
        }
    }
}

/// Runs a program to its end, in the working directory.
///
/// # Errors
/// If it cannot be started, with the text of Go's library.
pub(crate) fn run_program(
    io: &CommandIo<'_>,
    program: &str,
    arguments: &[&str],
) -> Result<Output, ToolFailure> {
    let found = if program.contains('/') {
        io.resolve_path(program)
    } else {
        find_in_path(io, program).unwrap_or_else(|| program.into())
    };
    let started = Command::new(found)
        .args(arguments)
        .current_dir(&io.folder)
        .stdin(std::process::Stdio::null())
        .output();
    started.map_err(|error| {
        let why = if error.kind() == std::io::ErrorKind::NotFound && !program.contains('/') {
            format!("exec: {}: executable file not found in $PATH", go::quote(program))
        } else {
            format!("fork/exec {program}: {}", mainstay_gocompat::io_error_text(&error))
        };
        ToolFailure { why, stdout: String::new(), stderr: String::new() }
    })
}

/// The path of a program in the folders of `PATH`.
fn find_in_path(io: &CommandIo<'_>, program: &str) -> Option<PathBuf> {
    let folders = (io.environment)("PATH")?;
    folders
        .split(':')
        .map(|folder| io.resolve_path(folder).join(program))
        .find(|path| path.is_file())
}

/// Why a program failed, with the text of Go's library; none after success.
pub(crate) fn exit_reason(output: &Output) -> Option<String> {
    if output.status.success() {
        return None;
    }
    Some(match output.status.code() {
        Some(code) => format!("exit status {code}"),
        None => "signal: killed".to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn docker_and_podman_are_the_only_tools() {
        assert_eq!(Tool::from_name("docker").map(|tool| tool.0), Some("docker"));
        assert_eq!(Tool::from_name("podman").map(|tool| tool.0), Some("podman"));
        assert!(Tool::from_name("none").is_none() && Tool::from_name("buildah").is_none());
    }
}
