//! What a container tool knows of images, for the validator of architectures.

use super::super::call::Io;
use super::super::tool;
use mainstay_bundle::validate::Images;

/// Asks a container tool.
pub(super) struct Asked<'a, 'io> {
    /// The outside.
    pub(super) io: &'a Io<'io>,
    /// Which tool.
    pub(super) tool: &'static str,
}

impl Images for Asked<'_, '_> {
    fn manifest(&mut self, image: &str) -> Result<String, String> {
        self.ask(&["pull", image])?;
        self.ask(&["manifest", "inspect", image])
    }
}

impl Asked<'_, '_> {
    fn ask(&self, arguments: &[&str]) -> Result<String, String> {
        let command = format!("{} {}", self.tool, arguments.join(" "));
        let failed = |why: &str, said: &str| format!("{command} failed with error: ({why}) {said}");
        let output =
            tool::start(self.io, self.tool, arguments).map_err(|ended| failed(&ended.why, ""))?;
        let mut said = String::from_utf8_lossy(&output.stdout).into_owned();
        said.push_str(&String::from_utf8_lossy(&output.stderr));
        match tool::ending(&output) {
            None => Ok(said),
            Some(why) => Err(failed(&why, &said)),
        }
    }
}
