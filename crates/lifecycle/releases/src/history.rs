//! The history of an extension: all of its releases, and what follows from them.
//!
//! The functions need only versions and statuses, which are labels of the index Secrets
//! ([`Revision::from_index_secret`]), so a caller decodes only the releases that it uses.

use crate::release::{Release, ReleaseStatus};
use crate::secrets::INDEX_SECRET_TYPE;
use mainstay_gocompat::quote;
use serde_json::Value;

/// How many releases of an extension are stored at most.
pub const MAX_HISTORY: usize = 10;

/// Version and status of a release.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Revision {
    /// The version of the release.
    pub version: i64,
    /// Its status.
    pub status: ReleaseStatus,
}

/// Why an upgrade cannot begin, in Helm's words.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum UpgradeBaseError {
    /// The newest release is pending: an operation runs, or was interrupted.
    #[error("another operation (install/upgrade/rollback) is in progress")]
    InProgress,
    /// No release exists, or the newest one is neither deployed nor failed nor superseded.
    #[error("{} has no deployed releases", quote(.release))]
    NoDeployedReleases {
        /// The name of the release.
        release: String,
    },
}

/// What the applier of an extension has to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RequiredAction {
    /// No release exists.
    Install,
    /// The manifest differs, or the newest release failed or was superseded.
    Upgrade,
    /// The manifest is the same: objects that were deleted or changed are restored, and no release is
    /// written.
    Reconcile,
}

impl Revision {
    /// Reads the labels of an index Secret; none for other Secrets and unreadable labels.
    pub fn from_index_secret(secret: &Value) -> Option<Self> {
        if secret["type"] != INDEX_SECRET_TYPE {
            return None;
        }
        let labels = &secret["metadata"]["labels"];
        Some(Self {
            version: labels["version"].as_str()?.parse().ok()?,
            status: ReleaseStatus::from_label(labels["status"].as_str()?),
        })
    }
}

impl From<&Release> for Revision {
    fn from(release: &Release) -> Self {
        Self { version: release.version, status: release.info.status }
    }
}

/// The newest release, whatever its status.
pub fn last(revisions: &[Revision]) -> Option<Revision> {
    revisions.iter().copied().max_by_key(|revision| revision.version)
}

/// The deployed release: the newest one with the status `deployed`. It tells what is installed.
pub fn deployed(revisions: &[Revision]) -> Option<Revision> {
    revisions
        .iter()
        .copied()
        .filter(|revision| revision.status == ReleaseStatus::Deployed)
        .max_by_key(|revision| revision.version)
}

/// The version of the next release.
pub fn next_version(revisions: &[Revision]) -> i64 {
    last(revisions).map_or(1, |revision| revision.version + 1)
}

/// The release that an upgrade starts from: its objects that are not in the new release are deleted,
/// and it is superseded in the end. That is the deployed release, or without one the newest release if it
/// failed or was superseded.
///
/// # Errors
/// An operation is in progress, or no such release exists.
pub fn upgrade_base(name: &str, revisions: &[Revision]) -> Result<Revision, UpgradeBaseError> {
    let none = || UpgradeBaseError::NoDeployedReleases { release: name.to_owned() };
    let last = last(revisions).ok_or_else(none)?;
    if last.status.is_pending() {
        return Err(UpgradeBaseError::InProgress);
    }
    match (deployed(revisions), last.status) {
        (Some(deployed), _) => Ok(deployed),
        (None, ReleaseStatus::Failed | ReleaseStatus::Superseded) => Ok(last),
        (None, _) => Err(none()),
    }
}

/// The versions that are deleted before the next release of an upgrade is written, the oldest first. The
/// deployed release is never among them. `max` counts the next release.
pub fn prunable_versions(revisions: &[Revision], max: usize) -> Vec<i64> {
    let deployed = deployed(revisions).map(|revision| revision.version);
    let excess = revisions.len().saturating_sub(max.saturating_sub(1));
    let mut versions: Vec<i64> = revisions.iter().map(|revision| revision.version).collect();
    versions.sort_unstable();
    versions.retain(|version| Some(*version) != deployed);
    versions.truncate(excess);
    versions
}

/// What the applier has to do for a manifest, given the newest release.
pub fn required_action(last: Option<&Release>, manifest: &str) -> RequiredAction {
    match last {
        None => RequiredAction::Install,
        Some(last)
            if last.manifest != manifest
                || matches!(
                    last.info.status,
                    ReleaseStatus::Failed | ReleaseStatus::Superseded
                ) =>
        {
            RequiredAction::Upgrade
        }
        Some(_) => RequiredAction::Reconcile,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ReleaseStatus::{
        Deployed, Failed, PendingInstall, PendingUpgrade, Superseded, Uninstalled,
    };

    fn revisions(statuses: &[ReleaseStatus]) -> Vec<Revision> {
        (1..).zip(statuses).map(|(version, &status)| Revision { version, status }).collect()
    }

    #[test]
    fn newest_deployed_release_counts_when_several_are() {
        let all = revisions(&[Deployed, Deployed, Failed]);
        assert_eq!(deployed(&all).map(|revision| revision.version), Some(2));
        assert_eq!(next_version(&all), 4);
        assert_eq!(next_version(&[]), 1);
        assert_eq!(deployed(&revisions(&[Failed])), None);
    }

    #[test]
    fn upgrade_starts_from_the_deployed_release_or_a_failed_one() {
        let base = |statuses: &[ReleaseStatus]| {
            upgrade_base("ext", &revisions(statuses)).map(|revision| revision.version)
        };
        assert_eq!(base(&[Superseded, Deployed, Failed]), Ok(2));
        assert_eq!(base(&[Failed, Failed]), Ok(2));
        assert_eq!(base(&[Deployed, PendingUpgrade]), Err(UpgradeBaseError::InProgress));
        assert_eq!(base(&[PendingInstall]), Err(UpgradeBaseError::InProgress));
        for none in [&[][..], &[Uninstalled]] {
            let error = base(none).unwrap_err().to_string();
            assert_eq!(error, "\"ext\" has no deployed releases");
        }
    }

    #[test]
    fn oldest_releases_are_pruned_except_the_deployed_one() {
        let mut statuses = vec![Superseded; 9];
        statuses.push(Deployed);
        assert_eq!(prunable_versions(&revisions(&statuses), MAX_HISTORY), [1]);
        assert_eq!(prunable_versions(&revisions(&statuses[1..]), MAX_HISTORY), [0; 0]);
        // A failing upgrade does not lose the release that runs.
        let mut statuses = vec![Failed; 12];
        statuses[1] = Deployed;
        assert_eq!(prunable_versions(&revisions(&statuses), MAX_HISTORY), [1, 3, 4]);
        assert_eq!(prunable_versions(&revisions(&[Deployed]), 1), [0; 0]);
    }

    #[test]
    fn changed_manifest_or_failed_release_needs_an_upgrade() {
        let release = |status| {
            let mut release = Release { manifest: "m".into(), ..Release::default() };
            release.info.status = status;
            release
        };
        assert_eq!(required_action(None, "m"), RequiredAction::Install);
        for (status, manifest, wanted) in [
            (Deployed, "m", RequiredAction::Reconcile),
            (Deployed, "n", RequiredAction::Upgrade),
            (Failed, "m", RequiredAction::Upgrade),
            (Superseded, "m", RequiredAction::Upgrade),
            (PendingUpgrade, "m", RequiredAction::Reconcile),
        ] {
            assert_eq!(required_action(Some(&release(status)), manifest), wanted, "{status}");
        }
    }
}
