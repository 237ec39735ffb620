//! The Pod Security Standards: what a pod may ask of its node, by level and version.
//!
//! Functions of plain objects, for whoever admits writes:
//!
//! * [`Policy::of_labels`]: what a namespace's labels enforce, warn of and write down.
//! * [`violations`]: what of a pod a standard does not allow, in the original's words.
//! * [`host_ports`]: which ports of this machine the annotation of a simulated pod lends it. They are host ports
//!   for every standard: here, and nowhere else, the annotation is read.
//!
//! The rules and texts are those of `k8s.io/pod-security-admission` of Kubernetes 1.35.

mod baseline;
mod lent;
mod pod;
mod restricted;

pub use lent::{HOST_PORTS, host_port, host_ports};
use mainstay_object::{FieldError, FieldPath, Object};
use pod::Pod;
use serde_json::{Map, Value};
use std::fmt;

/// What the labels of namespaces begin with, and the annotations of the audit log.
pub const PREFIX: &str = "pod-security.kubernetes.io/";
/// The last minor version in which a rule changed; later ones are the same.
const LAST: u64 = 35;

/// How much a standard forbids, from nothing to the most.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Level {
    /// Nothing is forbidden.
    #[default]
    Privileged,
    /// Known ways out of a container are forbidden.
    Baseline,
    /// What hardening guides ask for is required.
    Restricted,
}

impl Level {
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

/// The version of Kubernetes that a standard is taken from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Version {
    /// Whatever the server's own is.
    #[default]
    Latest,
    /// `v1.` and this.
    Minor(u64),
}

impl Version {
    fn parse(text: &str) -> Option<Self> {
        if text == "latest" {
            return Some(Self::Latest);
        }
        let minor = text.strip_prefix("v1.")?;
        let digits = minor.bytes().all(|byte| byte.is_ascii_digit());
        let plain = digits && (minor == "0" || !minor.starts_with('0'));
        let number: i64 = plain.then(|| minor.parse().ok()).flatten()?;
        u64::try_from(number).ok().map(Self::Minor)
    }

    /// The minor version whose rules hold.
    fn minor(self) -> u64 {
        match self {
            Self::Latest => LAST,
            Self::Minor(minor) => minor.min(LAST),
        }
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Latest => f.write_str("latest"),
            Self::Minor(minor) => write!(f, "v1.{minor}"),
        }
    }
}

/// A level as a version has it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Standard {
    /// How much is forbidden.
    pub level: Level,
    /// As which version has it.
    pub version: Version,
}

impl fmt::Display for Standard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.level.name(), self.version)
    }
}

/// What holds in a namespace.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Policy {
    /// Pods that violate it are refused.
    pub enforce: Standard,
    /// Violations are written into the audit log.
    pub audit: Standard,
    /// Clients are warned of violations.
    pub warn: Standard,
}

impl Policy {
    /// Whether nothing is looked at.
    pub fn is_privileged(&self) -> bool {
        [self.enforce, self.audit, self.warn].iter().all(|one| one.level == Level::Privileged)
    }

    /// What the labels of a namespace say, and what is wrong with them. Of a level that cannot be read
    /// the strictest is enforced, and nothing is warned of or written down.
    pub fn of_labels(namespace: &Object) -> (Self, Vec<FieldError>) {
        let mut reader = Reader { namespace, errors: Vec::new() };
        let mut policy = Self::default();
        let enforce = reader.level("enforce");
        if let Some(level) = enforce {
            policy.enforce.level = level.unwrap_or(Level::Restricted);
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
        // Who is refused pods is warned of the templates that make them, unless a label says otherwise.
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

/// A level that there is not.
#[derive(Clone, Copy)]
struct Unreadable;

struct Reader<'a> {
    namespace: &'a Object,
    errors: Vec<FieldError>,
}

impl<'a> Reader<'a> {
    fn label(&self, name: &str) -> Option<(&'a str, FieldPath)> {
        let key = format!("{PREFIX}{name}");
        let value = self.namespace.label(&key)?;
        Some((value, FieldPath::new("metadata").child("labels").key(&key)))
    }

    /// None without the label.
    fn level(&mut self, name: &str) -> Option<Result<Level, Unreadable>> {
        let (value, path) = self.label(name)?;
        let level = Level::parse(value);
        if level.is_none() {
            let why = "must be one of privileged, baseline, restricted";
            self.errors.push(FieldError::invalid(&path, value, why));
        }
        Some(level.ok_or(Unreadable))
    }

    /// None without the label; the latest if it cannot be read.
    fn version(&mut self, name: &str) -> Option<Version> {
        let (value, path) = self.label(name)?;
        let version = Version::parse(value);
        if version.is_none() {
            let why = r#"must be "latest" or "v1.x""#;
            self.errors.push(FieldError::invalid(&path, value, why));
        }
        Some(version.unwrap_or_default())
    }
}

/// Something that a standard does not allow.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// What is not allowed, in a few words.
    pub reason: String,
    /// Where it is; may be empty.
    pub detail: String,
}

impl Violation {
    #[expect(clippy::unnecessary_wraps, reason = "it is what a rule returns")]
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

/// Violations in a row, as refusals and warnings have them.
pub fn joined(violations: &[Violation]) -> String {
    let texts: Vec<String> = violations.iter().map(ToString::to_string).collect();
    texts.join(", ")
}

/// The reasons of violations in a row.
pub fn reasons(violations: &[Violation]) -> String {
    let texts: Vec<&str> = violations.iter().map(|one| one.reason.as_str()).collect();
    texts.join(", ")
}

/// A rule: what it finds in a pod, as a minor version has it.
type Rule = fn(&Pod<'_>, u64) -> Option<Violation>;

/// A rule of a level, and when it holds.
struct Check {
    rule: Rule,
    /// The first minor version that has it.
    since: u64,
    /// The first minor version in which the restricted level has a stricter one in its place.
    replaced: u64,
}

impl Check {
    const fn new(rule: Rule) -> Self {
        Self { rule, since: 0, replaced: u64::MAX }
    }

    const fn since(self, since: u64) -> Self {
        Self { since, ..self }
    }

    const fn replaced(self, replaced: u64) -> Self {
        Self { replaced, ..self }
    }
}

/// What of a pod a standard does not allow. `metadata` and `spec` are the pod's, or those of a
/// template; the order is the original's.
pub fn violations(
    standard: Standard,
    metadata: Option<&Map<String, Value>>,
    spec: &Value,
) -> Vec<Violation> {
    let pod = Pod::new(metadata, spec);
    let minor = standard.version.minor();
    let strict = standard.level == Level::Restricted;
    let basic = baseline::CHECKS.iter().filter(|check| !(strict && minor >= check.replaced));
    let more = if strict { restricted::CHECKS } else { &[] };
    let checks: Vec<&Check> = match standard.level {
        Level::Privileged => return Vec::new(),
        Level::Baseline | Level::Restricted => basic.chain(more).collect(),
    };
    let held = checks.into_iter().filter(|check| minor >= check.since);
    held.filter_map(|check| (check.rule)(&pod, minor)).collect()
}
