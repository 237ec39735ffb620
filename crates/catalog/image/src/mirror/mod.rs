//! Image mirrors: rules that redirect pulls to mirrors, block registries, or mark them insecure.
//!
//! The rules are those of `registries.conf` version 2 (containers/image). The objects of a cluster
//! (`ImageDigestMirrorSet`, `ImageTagMirrorSet`, `ImageContentSourcePolicy`) become such rules as
//! in OpenShift. Only the rule with the longest matching prefix applies to a name: first its
//! mirrors in order, then the registry itself unless it is blocked.

mod cluster;
mod file;

pub use cluster::{ClusterError, from_objects};
pub use file::{FileError, from_toml};

use crate::{
    reference::{ImageReference, ImageReferenceError},
    registry::{RegistryError, Security},
};

/// Which references a mirror serves.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PullScope {
    /// All references.
    #[default]
    All,
    /// References with a digest.
    DigestOnly,
    /// References without a digest.
    TagOnly,
}

/// A mirror.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mirror {
    /// The replacement of the prefix: a registry, with an optional path.
    pub location: String,
    /// Whether any certificate is accepted.
    pub insecure: bool,
    /// Which references it serves.
    pub pulls: PullScope,
}

/// The rule for references with a prefix.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MirrorRule {
    /// A registry, a path or a repository in it, or `*.domain` for all registries below a domain.
    pub prefix: String,
    /// The replacement of the prefix in the registry itself; empty for no replacement.
    pub location: String,
    /// Whether any certificate of the registry is accepted.
    pub insecure: bool,
    /// Whether nothing is pulled from the registry itself.
    pub blocked: bool,
    /// Mirrors in order.
    pub mirrors: Vec<Mirror>,
    /// Whether all mirrors serve digests only.
    pub digest_only: bool,
}

/// All mirror rules.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MirrorRules {
    /// The rules in any order: the longest prefix applies.
    pub rules: Vec<MirrorRule>,
    /// Registries for names without a registry; references always have one.
    pub search: Vec<String>,
}

/// A registry to pull from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MirrorSource {
    /// The reference there.
    pub reference: ImageReference,
    /// The security of the connection.
    pub security: Security,
    /// Whether it is a mirror.
    pub mirror: bool,
}

/// Why there is no source to pull from.
#[derive(Debug, thiserror::Error)]
pub enum MirrorError {
    /// A rule blocks the registry.
    #[error("registry {registry} is blocked by the rule for {prefix}")]
    Blocked {
        /// The registry.
        registry: String,
        /// The prefix of the rule.
        prefix: String,
    },
    /// A rule makes an invalid reference.
    #[error("the rule for {prefix} turns {reference} into {name:?}: {source}")]
    Name {
        /// The prefix of the rule.
        prefix: String,
        /// The invalid reference.
        name: String,
        /// The original reference.
        reference: String,
        /// Why it is invalid.
        source: ImageReferenceError,
    },
    /// All sources fail.
    #[error("{reference}: {}", join(.attempts))]
    All {
        /// The reference.
        reference: String,
        /// Each source with its error.
        attempts: Vec<(String, RegistryError)>,
    },
}

fn join(attempts: &[(String, RegistryError)]) -> String {
    let lines: Vec<String> =
        attempts.iter().map(|(place, error)| format!("[{place}: {error}]")).collect();
    lines.join(" ")
}

/// The length of a prefix that matches a repository; none if it does not match.
fn covers(prefix: &str, repository: &str) -> Option<usize> {
    if let Some(domain) = prefix.strip_prefix("*.") {
        // Registries below the domain, with any repository.
        let host = repository.split('/').next()?.split(':').next()?;
        let below = host.strip_suffix(domain)?.strip_suffix('.')?;
        return (!below.is_empty()).then_some(prefix.len());
    }
    let rest = repository.strip_prefix(prefix)?;
    (rest.is_empty() || rest.starts_with(['/', ':'])).then_some(prefix.len())
}

impl MirrorRules {
    /// The rule for a reference.
    pub fn rule(&self, reference: &ImageReference) -> Option<&MirrorRule> {
        let repository = reference.repository();
        let covering = self.rules.iter().filter_map(|rule| {
            // A prefix may also name a single image.
            let by_name = covers(&rule.prefix, &repository);
            let by_tag = covers(&rule.prefix, &reference.to_string());
            by_name.or(by_tag).map(|length| (length, rule))
        });
        // The first of several rules with equal length.
        let mut best: Option<(usize, &MirrorRule)> = None;
        for (length, rule) in covering {
            let first = mainstay_fault::is_on("the-first-prefix-decides");
            if best.is_none_or(|(known, _)| length > known && !first) {
                best = Some((length, rule));
            }
        }
        best.map(|(_, rule)| rule)
    }

    /// The sources of a reference, in the order in which they are tried. `security` applies to
    /// registries without a rule.
    pub fn sources(
        &self,
        reference: &ImageReference,
        security: Security,
    ) -> Result<Vec<MirrorSource>, MirrorError> {
        let itself =
            |security| MirrorSource { reference: reference.clone(), security, mirror: false };
        let Some(rule) = self.rule(reference) else { return Ok(vec![itself(security)]) };
        let by_digest = reference.digest().is_some();
        let reach = |insecure| if insecure { Security::Insecure } else { Security::Tls };
        let mut sources = Vec::new();
        for mirror in &rule.mirrors {
            let serves = match mirror.pulls {
                _ if rule.digest_only && !by_digest => false,
                PullScope::All => true,
                PullScope::DigestOnly => by_digest,
                PullScope::TagOnly => !by_digest,
            };
            if serves {
                let reference = rule.moved(reference, &mirror.location)?;
                let security = reach(mirror.insecure);
                sources.push(MirrorSource { reference, security, mirror: true });
            }
        }
        if !rule.blocked {
            let security = if rule.insecure { Security::Insecure } else { security };
            sources.push(if rule.location.is_empty() {
                itself(security)
            } else {
                let reference = rule.moved(reference, &rule.location)?;
                MirrorSource { reference, security, mirror: false }
            });
        }
        if sources.is_empty() {
            let registry = reference.domain().to_owned();
            return Err(MirrorError::Blocked { registry, prefix: rule.prefix.clone() });
        }
        Ok(sources)
    }
}

impl MirrorRule {
    /// The reference with the prefix replaced. For `*.domain`, the registry is replaced.
    fn moved(
        &self,
        reference: &ImageReference,
        location: &str,
    ) -> Result<ImageReference, MirrorError> {
        let repository = reference.repository();
        let rest = if self.prefix.starts_with("*.") {
            repository.strip_prefix(reference.domain()).unwrap_or_default()
        } else {
            repository.strip_prefix(&*self.prefix).unwrap_or_default()
        };
        let name = format!("{location}{rest}");
        reference.moved_to(&name).map_err(|source| MirrorError::Name {
            prefix: self.prefix.clone(),
            name,
            reference: reference.to_string(),
            source,
        })
    }
}
