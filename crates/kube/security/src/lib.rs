//! Pod Security Standards: the checks of a pod by level and version.
//!
//! Pure functions, for admission:
//!
//! * [`NamespacePolicy::from_labels`]: the standards that a namespace's labels enforce, audit and warn of.
//! * [`violations`]: the rules of a standard that a pod violates, with upstream's messages.
//! * [`host_ports`]: the ports of this machine that the annotation of a simulated pod maps. Each
//!   standard treats them as host ports; this crate alone parses the annotation.
//!
//! The rules and messages are those of `k8s.io/pod-security-admission` of Kubernetes 1.35.

mod baseline;
mod host_ports;
mod pod;
mod restricted;

pub use host_ports::{HOST_PORTS, host_port, host_ports};
use mainstay_object::{FieldError, FieldPath, Object};
use pod::Pod;
use serde_json::{Map, Value};
use std::fmt;

/// The prefix of the labels of namespaces and of the audit annotations.
pub const PREFIX: &str = "pod-security.kubernetes.io/";
/// The last minor version in which a rule changed.
const LAST_CHANGE: u64 = 35;

/// Level of a standard, from the least strict to the strictest.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum SecurityLevel {
    /// Nothing is forbidden.
    #[default]
    Privileged,
    /// Known privilege escalations are forbidden.
    Baseline,
    /// Hardening best practices are required.
    Restricted,
}

impl SecurityLevel {
    /// The name in labels.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Privileged => "privileged",
            Self::Baseline => "baseline",
            Self::Restricted => "restricted",
        }
    }

    fn parse(text: &str) -> Option<Self> {
        [Self::Privileged, Self::Baseline, Self::Restricted]
            .into_iter()
            .find(|level| level.name() == text)
    }
}

/// The version of Kubernetes whose rules a standard has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum StandardVersion {
    /// The server's version.
    #[default]
    Latest,
    /// `v1.` and this minor version.
    Minor(u64),
}

impl StandardVersion {
    fn parse(text: &str) -> Option<Self> {
        if text == "latest" {
            return Some(Self::Latest);
        }
        let minor = text.strip_prefix("v1.")?;
        let digits = minor.bytes().all(|byte| byte.is_ascii_digit());
        let is_canonical = digits && (minor == "0" || !minor.starts_with('0'));
        let number: i64 = is_canonical.then(|| minor.parse().ok()).flatten()?;
        u64::try_from(number).ok().map(Self::Minor)
    }

    /// The minor version whose rules apply.
    fn minor(self) -> u64 {
        match self {
            Self::Latest => LAST_CHANGE,
            Self::Minor(minor) => minor.min(LAST_CHANGE),
        }
    }
}

impl fmt::Display for StandardVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Latest => f.write_str("latest"),
            Self::Minor(minor) => write!(f, "v1.{minor}"),
        }
    }
}

/// A level with the rules of a version.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Standard {
    /// The level.
    pub level: SecurityLevel,
    /// The version.
    pub version: StandardVersion,
}

impl fmt::Display for Standard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.level.name(), self.version)
    }
}

/// The standards of a namespace, by mode.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NamespacePolicy {
    /// Pods that violate it are rejected.
    pub enforce: Standard,
    /// Violations become audit annotations.
    pub audit: Standard,
    /// Violations become warnings for the client.
    pub warn: Standard,
}

impl NamespacePolicy {
    /// Whether each mode has the privileged level.
    pub fn is_privileged(&self) -> bool {
        [self.enforce, self.audit, self.warn]
            .iter()
            .all(|mode| mode.level == SecurityLevel::Privileged)
    }

    /// The policy in the labels of a namespace, and the errors of the labels. An invalid level enforces
    /// the strictest one, and disables audit and warnings.
    pub fn from_labels(namespace: &Object) -> (Self, Vec<FieldError>) {
        let mut reader = LabelReader { namespace, errors: Vec::new() };
        let mut policy = Self::default();
        let enforce = reader.level("enforce");
        if let Some(level) = enforce {
            policy.enforce.level = level.unwrap_or(SecurityLevel::Restricted);
        }
        if let Some(version) = reader.version("enforce-version") {
            policy.enforce.version = version;
        }
        if let Some(level) = reader.level("audit") {
            policy.audit.level = level.unwrap_or_default();
        }
        if let Some(version) = reader.version("audit-version") {
            policy.audit.version = version;
        }
        let warn = reader.level("warn");
        if let Some(level) = warn {
            policy.warn.level = level.unwrap_or_default();
        }
        let warn_version = reader.version("warn-version");
        if let Some(version) = warn_version {
            policy.warn.version = version;
        }
        // The enforced level also warns of pod templates, unless a label sets the warnings.
        if warn.is_none()
            && let Some(Ok(level)) = enforce
            && level > policy.warn.level
        {
            policy.warn.level = level;
            if warn_version.is_none() {
                policy.warn.version = policy.enforce.version;
            }
        }
        (policy, reader.errors)
    }
}

/// The value of a label is no level.
#[derive(Clone, Copy)]
struct InvalidLevel;

/// Parser of the labels of a namespace.
struct LabelReader<'a> {
    namespace: &'a Object,
    errors: Vec<FieldError>,
}

impl<'a> LabelReader<'a> {
    fn label(&self, name: &str) -> Option<(&'a str, FieldPath)> {
        let key = format!("{PREFIX}{name}");
        let value = self.namespace.label(&key)?;
        Some((value, FieldPath::new("metadata").child("labels").key(&key)))
    }

    /// None without the label.
    fn level(&mut self, name: &str) -> Option<Result<SecurityLevel, InvalidLevel>> {
        let (value, path) = self.label(name)?;
        let level = SecurityLevel::parse(value);
        if level.is_none() {
            let why = "must be one of privileged, baseline, restricted";
            self.errors.push(FieldError::invalid(&path, value, why));
        }
        Some(level.ok_or(InvalidLevel))
    }

    /// None without the label; the latest version for an invalid value.
    fn version(&mut self, name: &str) -> Option<StandardVersion> {
        let (value, path) = self.label(name)?;
        let version = StandardVersion::parse(value);
        if version.is_none() {
            let why = r#"must be "latest" or "v1.x""#;
            self.errors.push(FieldError::invalid(&path, value, why));
        }
        Some(version.unwrap_or_default())
    }
}

/// A rule of a standard that a pod violates.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// The forbidden setting, in a few words.
    pub reason: String,
    /// The containers and values; may be empty.
    pub detail: String,
}

impl Violation {
    #[expect(clippy::unnecessary_wraps, reason = "the return type of a rule")]
    fn new(reason: impl Into<String>, detail: impl Into<String>) -> Option<Self> {
        Some(Self { reason: reason.into(), detail: detail.into() })
    }
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.reason)?;
        if self.detail.is_empty() { Ok(()) } else { write!(f, " ({})", self.detail) }
    }
}

/// Violations in one line, as in rejections and warnings.
pub fn join_violations(violations: &[Violation]) -> String {
    let texts: Vec<String> = violations.iter().map(ToString::to_string).collect();
    texts.join(", ")
}

/// The reasons of violations in one line.
pub fn join_reasons(violations: &[Violation]) -> String {
    let texts: Vec<&str> = violations.iter().map(|violation| violation.reason.as_str()).collect();
    texts.join(", ")
}

/// A rule: the violation of a pod by the rules of a minor version.
type CheckPod = fn(&Pod<'_>, u64) -> Option<Violation>;

/// A rule of a level, and the versions that have it.
struct Check {
    rule: CheckPod,
    /// The first minor version with the rule.
    since: u64,
    /// The first minor version in which a stricter rule of the restricted level replaces it.
    replaced_in: u64,
}

impl Check {
    const fn new(rule: CheckPod) -> Self {
        Self { rule, since: 0, replaced_in: u64::MAX }
    }

    const fn since(self, since: u64) -> Self {
        Self { since, ..self }
    }

    const fn replaced_in(self, replaced_in: u64) -> Self {
        Self { replaced_in, ..self }
    }
}

/// The violations of a pod, in upstream's order. `metadata` and `spec` are those of the pod or of a
/// pod template.
pub fn violations(
    standard: Standard,
    metadata: Option<&Map<String, Value>>,
    spec: &Value,
) -> Vec<Violation> {
    let pod = Pod::new(metadata, spec);
    let minor = standard.version.minor();
    let is_restricted = standard.level == SecurityLevel::Restricted;
    let baseline =
        baseline::CHECKS.iter().filter(|check| !(is_restricted && minor >= check.replaced_in));
    let restricted = if is_restricted { restricted::CHECKS } else { &[] };
    let checks: Vec<&Check> = match standard.level {
        SecurityLevel::Privileged => return Vec::new(),
        SecurityLevel::Baseline | SecurityLevel::Restricted => baseline.chain(restricted).collect(),
    };
    let applicable = checks.into_iter().filter(|check| minor >= check.since);
    applicable.filter_map(|check| (check.rule)(&pod, minor)).collect()
}
