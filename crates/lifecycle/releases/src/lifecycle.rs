//! Status changes of a release: installation, upgrade, deletion, with Helm's descriptions.

use crate::content::ReleaseContent;
use crate::release::{Release, ReleaseInfo, ReleaseStatus};
use jiff::Timestamp;
use std::collections::BTreeMap;
use std::fmt;

/// The value of a label that removes it on upgrade.
pub const NULL_LABEL: &str = "null";

/// The operation that made a release.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReleaseAction {
    /// The first installation.
    Install,
    /// An upgrade over an earlier release.
    Upgrade,
}

impl Release {
    /// The release of a first installation that begins.
    pub fn pending_install(
        name: &str,
        namespace: &str,
        content: ReleaseContent,
        labels: BTreeMap<String, String>,
        now: Timestamp,
    ) -> Self {
        let mut release = Self {
            name: name.to_owned(),
            namespace: namespace.to_owned(),
            version: 1,
            info: ReleaseInfo {
                first_deployed: Some(now),
                last_deployed: Some(now),
                ..ReleaseInfo::default()
            },
            labels,
            ..Self::default()
        }
        .with_content(content);
        release.set_status(ReleaseStatus::PendingInstall, "Initial install underway");
        release
    }

    /// The release of an upgrade that begins. `last` is the newest release. `base` is the release that the
    /// upgrade starts from: the deployed one, or else the newest one.
    ///
    /// Labels of the newest release stay unless the new ones replace them or say `null`.
    pub fn pending_upgrade(
        last: &Self,
        base: &Self,
        content: ReleaseContent,
        labels: BTreeMap<String, String>,
        now: Timestamp,
    ) -> Self {
        let mut merged = last.labels.clone();
        merged.extend(labels);
        merged.retain(|_, value| value != NULL_LABEL);
        let mut release = Self {
            name: last.name.clone(),
            namespace: base.namespace.clone(),
            version: last.version + 1,
            // operator-controller gives no values, so Helm copies those of the base.
            config: base.config.clone(),
            info: ReleaseInfo {
                first_deployed: base.info.first_deployed,
                last_deployed: Some(now),
                ..ReleaseInfo::default()
            },
            labels: merged,
            ..Self::default()
        }
        .with_content(content);
        release.set_status(ReleaseStatus::PendingUpgrade, "Preparing upgrade");
        release
    }

    /// Notes that all objects were applied. The base of an upgrade is [superseded](Self::supersede)
    /// first.
    pub fn complete(&mut self, action: ReleaseAction) {
        let description = match action {
            ReleaseAction::Install => "Install complete",
            ReleaseAction::Upgrade => "Upgrade complete",
        };
        self.set_status(ReleaseStatus::Deployed, description);
    }

    /// Notes why an object could not be applied.
    pub fn fail(&mut self, action: ReleaseAction, error: &dyn fmt::Display) {
        let subject = match action {
            ReleaseAction::Install => "Release",
            ReleaseAction::Upgrade => "Upgrade",
        };
        let name = mainstay_gocompat::quote(&self.name);
        self.set_status(ReleaseStatus::Failed, &format!("{subject} {name} failed: {error}"));
    }

    /// Notes that a later release was deployed. The description stays.
    pub fn supersede(&mut self) {
        self.info.status = ReleaseStatus::Superseded;
    }

    fn set_status(&mut self, status: ReleaseStatus, description: &str) {
        self.info.status = status;
        description.clone_into(&mut self.info.description);
    }

    fn with_content(self, content: ReleaseContent) -> Self {
        Self { chart: content.chart, manifest: content.manifest, hooks: content.hooks, ..self }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
        pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
    }

    fn at(seconds: i64) -> Timestamp {
        Timestamp::from_second(seconds).unwrap()
    }

    #[test]
    fn upgrade_continues_the_newest_release_and_keeps_the_first_time() {
        let content = ReleaseContent::default;
        let mut first = Release::pending_install(
            "ext",
            "ns",
            content(),
            labels(&[("kept", "1"), ("replaced", "1"), ("removed", "1")]),
            at(10),
        );
        assert_eq!(first.info.status, ReleaseStatus::PendingInstall);
        first.complete(ReleaseAction::Install);
        let mut second = Release::pending_upgrade(&first, &first, content(), labels(&[]), at(20));
        second.fail(ReleaseAction::Upgrade, &"no");
        assert_eq!(second.info.description, "Upgrade \"ext\" failed: no");
        let third = Release::pending_upgrade(
            &second,
            &first,
            content(),
            labels(&[("replaced", "2"), ("removed", "null")]),
            at(30),
        );
        assert_eq!(third.version, 3);
        assert_eq!(third.info.first_deployed, Some(at(10)));
        assert_eq!(third.info.last_deployed, Some(at(30)));
        assert_eq!(third.labels, labels(&[("kept", "1"), ("replaced", "2")]));
        first.supersede();
        assert_eq!(first.info.description, "Install complete");
        assert_eq!(first.info.status, ReleaseStatus::Superseded);
    }
}
