//! The history of an extension: all of its releases, and what follows from them.
//!
//! Most functions need only versions and statuses, which are labels of the index Secrets. So a caller decodes
//! only the releases that it uses.

use crate::release::{Release, ReleaseStatus};

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

/// Whether the newest release has this manifest, so that no other release is needed. Without a release, or after
/// one that failed or was superseded, another one is needed.
pub fn is_current(last: Option<&Release>, manifest: &str) -> bool {
    last.is_some_and(|last| {
        last.manifest == manifest
            && !matches!(last.info.status, ReleaseStatus::Failed | ReleaseStatus::Superseded)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use ReleaseStatus::{Deployed, Failed, PendingUpgrade, Superseded};

    fn revisions(statuses: &[ReleaseStatus]) -> Vec<Revision> {
        (1..).zip(statuses).map(|(version, &status)| Revision { version, status }).collect()
    }

    #[test]
    fn newest_deployed_release_counts_when_several_are() {
        let all = revisions(&[Deployed, Deployed, Failed]);
        assert_eq!(deployed(&all).map(|revision| revision.version), Some(2));
        assert_eq!(last(&all).map(|revision| revision.version), Some(3));
        assert_eq!(last(&[]), None);
        assert_eq!(deployed(&revisions(&[Failed])), None);
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
    fn changed_manifest_or_failed_release_needs_another_release() {
        let release = |status| {
            let mut release = Release { manifest: "m".into(), ..Release::default() };
            release.info.status = status;
            release
        };
        assert!(!is_current(None, "m"));
        for (status, manifest, wanted) in [
            (Deployed, "m", true),
            (Deployed, "n", false),
            (Failed, "m", false),
            (Superseded, "m", false),
            (PendingUpgrade, "m", true),
        ] {
            assert_eq!(is_current(Some(&release(status)), manifest), wanted, "{status}");
        }
    }
}
