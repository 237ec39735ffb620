//! Version of the Kubernetes API that is served.

/// The content of `/version`.
#[derive(Clone, Debug)]
pub struct VersionInfo {
    /// Major version of the Kubernetes API.
    pub major: String,
    /// Minor version of the Kubernetes API.
    pub minor: String,
    /// The full version: that of the Kubernetes API, a `+`, and that of this program.
    pub git_version: String,
    /// Commit that the program was built from; may be empty.
    pub git_commit: String,
    /// When the program was built; may be empty.
    pub build_date: String,
}

impl Default for VersionInfo {
    fn default() -> Self {
        Self {
            major: "1".to_owned(),
            minor: "35".to_owned(),
            git_version: concat!("v1.35.0+mainstay-", env!("CARGO_PKG_VERSION")).to_owned(),
            git_commit: String::new(),
            build_date: String::new(),
        }
    }
}
