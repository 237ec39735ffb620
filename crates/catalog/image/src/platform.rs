//! Platforms, and the choice of an image in an index for a platform.

use serde::{Deserialize, Serialize};
use std::{fmt, str::FromStr};

/// An OCI platform. Empty fields are omitted when it is written.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Platform {
    /// Architecture in Go's names: `amd64`, `arm64`, `ppc64le`, `s390x`, …
    #[serde(default)]
    pub architecture: String,
    /// Operating system in Go's names.
    #[serde(default)]
    pub os: String,
    /// Version of the operating system; only Windows uses it.
    #[serde(rename = "os.version", default, skip_serializing_if = "String::is_empty")]
    pub os_version: String,
    /// Required features of the operating system.
    #[serde(rename = "os.features", default, skip_serializing_if = "Vec::is_empty")]
    pub os_features: Vec<String>,
    /// Variant of the architecture: `v7` of `arm`, `v3` of `amd64`.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub variant: String,
}

/// The text is not `os/architecture[/variant]`.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "{0:?} is not a platform; write os/architecture or os/architecture/variant, as in linux/arm64"
)]
pub struct PlatformError(String);

impl Platform {
    /// Linux on the architecture of this program.
    pub fn host() -> Self {
        let architecture = match std::env::consts::ARCH {
            "x86_64" => "amd64",
            "aarch64" => "arm64",
            "powerpc64" => "ppc64le",
            other => other,
        };
        Self::linux(architecture)
    }

    /// Linux on an architecture.
    pub fn linux(architecture: &str) -> Self {
        Self { os: "linux".to_owned(), architecture: architecture.to_owned(), ..Self::default() }
    }

    /// Canonical names of architecture and variant, as in containerd: `x86_64` is `amd64`, `arm64`
    /// has no variant, `arm` is `v7` by default.
    #[must_use]
    pub fn normalized(&self) -> Self {
        let lower = self.architecture.to_lowercase();
        let variant = self.variant.to_lowercase();
        let (architecture, variant) = match (lower.as_str(), variant.as_str()) {
            ("x86_64" | "x86-64" | "amd64", variant) => {
                ("amd64", if variant == "v1" { "" } else { variant })
            }
            ("i386" | "i486" | "i586" | "i686" | "386", _) => ("386", ""),
            ("aarch64" | "arm64", "8" | "v8" | "v8.0" | "") => ("arm64", ""),
            ("aarch64" | "arm64", variant) => ("arm64", variant),
            ("armhf", _) | ("arm", "" | "7") => ("arm", "v7"),
            ("armel", _) | ("arm", "6") => ("arm", "v6"),
            ("arm", "5") => ("arm", "v5"),
            ("arm", "8") => ("arm", "v8"),
            (architecture, variant) => (architecture, variant),
        };
        let os = match self.os.to_lowercase().as_str() {
            "macos" => "darwin".to_owned(),
            other => other.to_owned(),
        };
        Self {
            architecture: architecture.to_owned(),
            variant: variant.to_owned(),
            os,
            ..self.clone()
        }
    }

    /// The architectures and variants that run on this platform, the best first: its variant, then
    /// lower ones, then images without a variant.
    fn wanted(&self) -> Vec<(String, String)> {
        let this = self.normalized();
        let number = |text: &str| text.strip_prefix('v').and_then(|text| text.parse::<u8>().ok());
        let lowest = match this.architecture.as_str() {
            "arm" => 5,
            "amd64" => 1,
            _ => u8::MAX,
        };
        let mut wanted = vec![(this.architecture.clone(), this.variant.clone())];
        if let Some(variant) = number(&this.variant) {
            for lower in (lowest..variant).rev() {
                let variant = match (lower, this.architecture.as_str()) {
                    (1, "amd64") => String::new(),
                    (lower, _) => format!("v{lower}"),
                };
                wanted.push((this.architecture.clone(), variant));
            }
        }
        if !this.variant.is_empty() && this.architecture != "arm" {
            wanted.push((this.architecture.clone(), String::new()));
        }
        if this.architecture == "arm64" {
            // 64-bit machines also run 32-bit images.
            wanted.extend(["v8", "v7", "v6", "v5"].map(|v| ("arm".to_owned(), v.to_owned())));
        }
        wanted
    }

    /// The index of the best image for this platform among those of an image index; the first of
    /// equally good ones. Entries without a platform never match.
    ///
    /// The rules are containerd's: the same operating system, and an equal or lower variant, the
    /// closest first.
    pub fn choose<'p>(&self, offers: impl IntoIterator<Item = Option<&'p Self>>) -> Option<usize> {
        let (wanted, os) = (self.wanted(), self.normalized().os);
        let ranked = offers.into_iter().enumerate().filter_map(|(index, offer)| {
            let offer = offer?.normalized();
            let fits = offer.os == os
                && (self.os_version.is_empty() || offer.os_version == self.os_version)
                && offer.os_features.iter().all(|one| self.os_features.contains(one));
            let rank = wanted.iter().position(|(architecture, variant)| {
                *architecture == offer.architecture && *variant == offer.variant
            })?;
            fits.then_some((rank, index))
        });
        let best = if mainstay_fault::is_on("the-least-fitting-image-is-chosen") {
            ranked.max()
        } else {
            ranked.min()
        };
        best.map(|(_, index)| index)
    }
}

impl fmt::Display for Platform {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.os, self.architecture)?;
        if self.variant.is_empty() { Ok(()) } else { write!(f, "/{}", self.variant) }
    }
}

impl FromStr for Platform {
    type Err = PlatformError;

    fn from_str(text: &str) -> Result<Self, PlatformError> {
        let parts: Vec<&str> = text.split('/').collect();
        let fine = |part: &&str| {
            !part.is_empty()
                && part.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_.-".contains(&byte))
        };
        if !(2..=3).contains(&parts.len()) || !parts.iter().all(fine) {
            return Err(PlatformError(text.to_owned()));
        }
        let platform = Self {
            os: parts[0].to_owned(),
            architecture: parts[1].to_owned(),
            variant: parts.get(2).copied().unwrap_or_default().to_owned(),
            ..Self::default()
        };
        Ok(platform.normalized())
    }
}
