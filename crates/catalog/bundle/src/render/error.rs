//! Why a bundle is not rendered.

use std::fmt;

/// Where rendering stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// The bundle cannot be read.
    Read,
    /// The bundle needs something that is not supported, or not switched on.
    Support,
    /// The configuration does not fit the bundle.
    Configuration,
    /// The bundle contradicts itself.
    Bundle,
    /// The bundle cannot watch the namespaces that are asked for.
    Settings,
}

/// Why a bundle is not rendered, in upstream's words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RenderError {
    stage: Stage,
    message: String,
}

impl RenderError {
    pub(super) fn new(stage: Stage, message: impl Into<String>) -> Self {
        Self { stage, message: message.into() }
    }

    /// Where it stopped.
    pub const fn stage(&self) -> Stage {
        self.stage
    }

    /// What is wrong; several lines if several things are.
    pub fn message(&self) -> &str {
        &self.message
    }

    /// Whether trying again is of no use before somebody changes the configuration.
    pub const fn is_terminal(&self) -> bool {
        matches!(self.stage, Stage::Configuration)
    }
}

impl fmt::Display for RenderError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_terminal() {
            f.write_str("terminal error: ")?;
        }
        f.write_str(&self.message)
    }
}

impl std::error::Error for RenderError {}
