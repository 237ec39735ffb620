//! Which Kubernetes this is.

/// What `/version` says.
#[derive(Clone, Debug)]
pub struct VersionInfo {
    /// Major version of the Kubernetes API spoken.
    pub major: String,
    /// Minor version of the Kubernetes API spoken.
    pub minor: String,
    /// The version in full: the API's, with this program's own behind a `+`.
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
