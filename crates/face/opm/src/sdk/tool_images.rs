//! Image manifests from a container tool, for the multi-architecture validator.

use super::super::call::CommandIo;
use super::super::tool;
use mainstay_bundle::validate::ImageInspector;
use std::error::Error;

/// Reads image manifests with a container tool.
pub(super) struct ToolImages<'a, 'io> {
    /// The input and output.
    pub(super) io: &'a CommandIo<'io>,
    /// The tool.
    pub(super) tool: &'static str,
}

/// A container tool could not be started, or failed.
#[derive(Debug, thiserror::Error)]
#[error("{command} failed with error: ({reason}) {output}")]
struct ToolError {
    /// The tool and its arguments.
    command: String,
    /// The reason.
    reason: String,
    /// Its output.
    output: String,
}

impl ImageInspector for ToolImages<'_, '_> {
    fn manifest(&mut self, image: &str) -> Result<String, Box<dyn Error>> {
        self.run_tool(&["pull", image])?;
        Ok(self.run_tool(&["manifest", "inspect", image])?)
    }
}

impl ToolImages<'_, '_> {
    fn run_tool(&self, arguments: &[&str]) -> Result<String, ToolError> {
        let failed = |reason: String, output: String| ToolError {
            command: format!("{} {}", self.tool, arguments.join(" ")),
            reason,
            output,
        };
        let output = tool::run_program(self.io, self.tool, arguments)
            .map_err(|ended| failed(ended.why, String::new()))?;
        let mut message = String::from_utf8_lossy(&output.stdout).into_owned();
        message.push_str(&String::from_utf8_lossy(&output.stderr));
        match tool::exit_reason(&output) {
            None => Ok(message),
            Some(why) => Err(failed(why, message)),
        }
    }
}
