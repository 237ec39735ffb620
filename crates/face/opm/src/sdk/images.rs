//! What a container tool knows of images, for the validator of architectures.

use super::super::call::Io;
use super::super::tool;
use mainstay_bundle::validate::ImageInspector;
use std::error::Error;

/// Asks a container tool.
pub(super) struct Asked<'a, 'io> {
    /// The outside.
    pub(super) io: &'a Io<'io>,
    /// Which tool.
    pub(super) tool: &'static str,
}

/// A container tool could not be started, or did not succeed.
#[derive(Debug, thiserror::Error)]
#[error("{command} failed with error: ({reason}) {output}")]
struct ToolError {
    /// The tool and its arguments.
    command: String,
    /// How it ended.
    reason: String,
    /// What it printed.
    output: String,
}

impl ImageInspector for Asked<'_, '_> {
    fn manifest(&mut self, image: &str) -> Result<String, Box<dyn Error>> {
        self.ask(&["pull", image])?;
        Ok(self.ask(&["manifest", "inspect", image])?)
    }
}

impl Asked<'_, '_> {
    fn ask(&self, arguments: &[&str]) -> Result<String, ToolError> {
        let failed = |reason: String, output: String| ToolError {
            command: format!("{} {}", self.tool, arguments.join(" ")),
            reason,
            output,
        };
        let output = tool::start(self.io, self.tool, arguments)
            .map_err(|ended| failed(ended.why, String::new()))?;
        let mut said = String::from_utf8_lossy(&output.stdout).into_owned();
        said.push_str(&String::from_utf8_lossy(&output.stderr));
        match tool::ending(&output) {
            None => Ok(said),
            Some(why) => Err(failed(why, said)),
        }
    }
}
