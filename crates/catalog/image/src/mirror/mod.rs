//! Where images are looked for: rules that send to mirrors, refuse registries, or declare them
//! insecure.
//!
//! The rules are those of containers' `registries.conf`, version 2; what a cluster says
//! (`ImageDigestMirrorSet`, `ImageTagMirrorSet`, `ImageContentSourcePolicy`) becomes such rules as
//! OpenShift makes them. The rule with the longest prefix that covers a name decides alone: its
//! mirrors come first, in their order, and then the registry itself unless it is blocked.

mod cluster;
mod file;

pub use cluster::{ClusterError, from_objects};
pub use file::{FileError, from_toml};

use crate::{
    reference::{Reference, ReferenceError},
    registry::{RegistryError, Security},
};

/// Which names a mirror serves.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Pulls {
    /// All.
    #[default]
    All,
    /// Those with a digest.
    DigestOnly,
    /// Those without.
    TagOnly,
}

/// A mirror.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mirror {
    /// What takes the place of the prefix: a registry, perhaps with a folder or a repository.
    pub location: String,
    /// Whether its certificate may be any.
    pub insecure: bool,
    /// Which names it serves.
    pub pulls: Pulls,
}

/// What holds for names with a prefix.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Rule {
    /// A registry, a folder or a repository in it, or `*.domain` for all registries below one.
    pub prefix: String,
    /// What takes the place of the prefix in the registry itself; empty where nothing does.
    pub location: String,
    /// Whether its certificate may be any.
    pub insecure: bool,
    /// Whether nothing is pulled from the registry itself.
    pub blocked: bool,
    /// Mirrors, the first one first.
    pub mirrors: Vec<Mirror>,
    /// Whether all mirrors serve digests only.
    pub digest_only: bool,
}

/// All rules.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Rules {
    /// In no order: the longest prefix decides.
    pub rules: Vec<Rule>,
    /// Where names without a registry are looked for; not used for references, which have one.
    pub search: Vec<String>,
}

/// A place to pull from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Source {
    /// The name there.
    pub reference: Reference,
    /// How it is reached.
    pub security: Security,
    /// Whether it is a mirror.
    pub mirror: bool,
}

/// Why there is no place to pull from.
#[derive(Debug, thiserror::Error)]
pub enum MirrorError {
    /// A rule refuses.
    #[error("registry {registry} is blocked by the rule for {prefix}")]
    Blocked {
        /// Which registry.
        registry: String,
        /// Whose rule.
        prefix: String,
    },
    /// What a rule makes of a name is none.
    #[error("the rule for {prefix} makes {name:?} of {reference}: {source}")]
    Name {
        /// Whose rule.
        prefix: String,
        /// What it makes.
        name: String,
        /// Of what.
        reference: String,
        /// Why it is none.
        source: ReferenceError,
    },
    /// Nobody had it.
    #[error("{reference}: {}", join(.attempts))]
    All {
        /// What was looked for.
        reference: String,
        /// Why each of the places did not have it.
        attempts: Vec<(String, RegistryError)>,
    },
}

fn join(attempts: &[(String, RegistryError)]) -> String {
    let lines: Vec<String> =
        attempts.iter().map(|(place, error)| format!("[{place}: {error}]")).collect();
    lines.join(" ")
}

/// How long a prefix is that covers a repository, if it does.
fn covers(prefix: &str, repository: &str) -> Option<usize> {
    if let Some(domain) = prefix.strip_prefix("*.") {
        // The domain and what is below it, whatever lies in it.
        let host = repository.split('/').next()?.split(':').next()?;
        let below = host.strip_suffix(domain)?.strip_suffix('.')?;
        return (!below.is_empty()).then_some(prefix.len());
    }
    let rest = repository.strip_prefix(prefix)?;
    (rest.is_empty() || rest.starts_with(['/', ':'])).then_some(prefix.len())
}

impl Rules {
    /// The rule for a name.
    pub fn rule(&self, reference: &Reference) -> Option<&Rule> {
        let repository = reference.repository();
        let covering = self.rules.iter().filter_map(|rule| {
            // A prefix may name a single image, too.
            let by_name = covers(&rule.prefix, &repository);
            let by_tag = covers(&rule.prefix, &reference.to_string());
            by_name.or(by_tag).map(|length| (length, rule))
        });
        // The first of those as long.
        let mut best: Option<(usize, &Rule)> = None;
        for (length, rule) in covering {
            let first = mainstay_fault::is_on("the-first-prefix-decides");
            if best.is_none_or(|(known, _)| length > known && !first) {
                best = Some((length, rule));
            }
        }
        best.map(|(_, rule)| rule)
    }

    /// Where a name is pulled from, the first place first. `security` is what holds where no rule
    /// says otherwise.
    pub fn sources(
        &self,
        reference: &Reference,
        security: Security,
    ) -> Result<Vec<Source>, MirrorError> {
        let itself = |security| Source { reference: reference.clone(), security, mirror: false };
        let Some(rule) = self.rule(reference) else { return Ok(vec![itself(security)]) };
        let by_digest = reference.digest().is_some();
        let reach = |insecure| if insecure { Security::Insecure } else { Security::Tls };
        let mut sources = Vec::new();
        for mirror in &rule.mirrors {
            let serves = match mirror.pulls {
                _ if rule.digest_only && !by_digest => false,
                Pulls::All => true,
                Pulls::DigestOnly => by_digest,
                Pulls::TagOnly => !by_digest,
            };
            if serves {
                let reference = rule.moved(reference, &mirror.location)?;
                let security = reach(mirror.insecure);
                sources.push(Source { reference, security, mirror: true });
            }
        }
        if !rule.blocked {
            let security = if rule.insecure { Security::Insecure } else { security };
            sources.push(if rule.location.is_empty() {
                itself(security)
            } else {
                let reference = rule.moved(reference, &rule.location)?;
                Source { reference, security, mirror: false }
            });
        }
        if sources.is_empty() {
            let registry = reference.domain().to_owned();
            return Err(MirrorError::Blocked { registry, prefix: rule.prefix.clone() });
        }
        Ok(sources)
    }
}

impl Rule {
    /// A name with another beginning. For `*.domain`, the registry is what is replaced.
    fn moved(&self, reference: &Reference, location: &str) -> Result<Reference, MirrorError> {
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
