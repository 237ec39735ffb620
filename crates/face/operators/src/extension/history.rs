//! `mainstay extension history`: the revisions of a ClusterExtension, from its ClusterObjectSets or its Helm
//! releases.

use super::{RequestTimeout, find_extension};
use clap::Args;
use jiff::Timestamp;
use mainstay_api::names::olm_v1::{BUNDLE_NAME, BUNDLE_RELEASE, BUNDLE_VERSION, OWNER_NAME_LABEL};
use mainstay_api::resources::CLUSTER_OBJECT_SET;
use mainstay_cause::Cause;
use mainstay_clock::Clock;
use mainstay_command::cluster::{
    ClusterArguments, ClusterHandle, ClusterReadError, ConnectionArguments,
};
use mainstay_command::exit::CommandFailure;
use mainstay_command::io::CommandIo;
use mainstay_command::text::columns;
use mainstay_command::text::format_output;
use mainstay_command::text::{Format, escape_controls};
use mainstay_object::{Object, builtin};
use mainstay_releases::{
    MAX_DECODED_BYTES, ReleaseStatus, decode_release, extra_chunk_names, index_selector,
};
use serde_json::{Value, json};

/// The header of the table.
const HEADER: [&str; 5] = ["REVISION", "BUNDLE", "VERSION", "STATUS", "AGE"];

/// Arguments of `history`.
#[derive(Args, Debug)]
pub(super) struct Arguments {
    /// Name of the ClusterExtension.
    #[arg(value_name = "NAME")]
    name: String,
    /// Output format.
    #[arg(short, long, value_enum, value_name = "FORMAT", default_value_t = Format::Text)]
    output: Format,
    /// The cluster.
    #[command(flatten, next_help_heading = "Cluster")]
    connection: ConnectionArguments,
}

/// How a revision ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RevisionOutcome {
    /// It is installed.
    Installed,
    /// It was installed until a later one was.
    Replaced,
    /// It was not installed, or is not yet.
    Unfinished,
}

/// A revision of a ClusterExtension.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Revision {
    /// Its number, from 1 on.
    pub(super) number: i64,
    /// The name of its bundle.
    pub(super) bundle: String,
    /// The version of its bundle.
    pub(super) version: String,
    /// The release of the version; empty if there is none.
    pub(super) release: String,
    /// The status in the words of the API: those of Helm releases, or the state of a ClusterObjectSet.
    pub(super) status: String,
    pub(super) outcome: RevisionOutcome,
    created: Option<Timestamp>,
}

/// The revisions of a ClusterExtension, and what could not be read.
#[derive(Debug, Default)]
pub(super) struct History {
    /// Oldest first.
    pub(super) revisions: Vec<Revision>,
    /// Warnings about revisions that are left out.
    pub(super) unreadable: Vec<String>,
}

pub(super) async fn run<C: ClusterHandle>(
    arguments: &Arguments,
    io: &mut CommandIo<'_>,
    connect: impl AsyncFnOnce(&ClusterArguments, RequestTimeout) -> Result<C, CommandFailure>,
) -> Result<(), CommandFailure> {
    let connection = &arguments.connection;
    let cluster = connect(&connection.cluster, RequestTimeout::Flag(connection.timeout())).await?;
    let extension = find_extension(&cluster, &arguments.name).await?;
    let History { revisions, unreadable } = read(&cluster, extension.name()).await?;
    for warning in &unreadable {
        let _ = writeln!(io.stderr, "warning: {}", escape_controls(warning));
    }
    if revisions.is_empty() && arguments.output == Format::Text {
        let _ = writeln!(io.stderr, "No revisions found: nothing was installed yet");
        return Ok(());
    }
    let value = Value::Array(revisions.iter().map(Revision::to_value).collect());
    let now = Clock::system().now();
    io.print(&format_output(arguments.output, &value, || table(&revisions, now)));
    Ok(())
}

/// Reads the revisions of an extension: its ClusterObjectSets, or without any its releases.
///
/// # Errors
/// The account may not list them, or the cluster does not respond.
pub(super) async fn read(
    cluster: &impl ClusterHandle,
    extension: &str,
) -> Result<History, CommandFailure> {
    let selector = format!("{OWNER_NAME_LABEL}={extension}");
    let sets = match cluster.list(&CLUSTER_OBJECT_SET, None, Some(&selector)).await {
        Ok(sets) => sets,
        // Only the experimental channel has ClusterObjectSets.
        Err(ClusterReadError::UnknownKind(_)) => Vec::new(),
        Err(error) => return Err(error.into()),
    };
    let mut history = if sets.is_empty() {
        read_releases(cluster, extension).await?
    } else {
        let revisions = sets.iter().filter_map(Revision::of_object_set).collect();
        History { revisions, unreadable: Vec::new() }
    };
    history.revisions.sort_by_key(|revision| revision.number);
    Ok(history)
}

async fn read_releases(
    cluster: &impl ClusterHandle,
    extension: &str,
) -> Result<History, CommandFailure> {
    // The namespace is that of the controller, which this command does not know.
    let selector = index_selector(Some(extension));
    let indexes = cluster.list(&builtin::SECRET, None, Some(&selector)).await?;
    let mut history = History::default();
    for index in &indexes {
        match read_release(cluster, index).await? {
            Ok(revision) => history.revisions.push(revision),
            Err(warning) => history.unreadable.push(warning),
        }
    }
    Ok(history)
}

/// Reads a release, or says why it cannot be read.
///
/// # Errors
/// The account may not get its other Secrets, or the cluster does not respond.
async fn read_release(
    cluster: &impl ClusterHandle,
    index: &Object,
) -> Result<Result<Revision, String>, CommandFailure> {
    let value = index.to_value();
    let names = match extra_chunk_names(&value) {
        Ok(names) => names,
        Err(error) => return Ok(Err(error.to_string())),
    };
    let mut chunks = Vec::new();
    for name in names {
        // A missing one is reported by the decoder.
        let chunk = cluster.get(&builtin::SECRET, Some(index.namespace()), &name).await?;
        chunks.extend(chunk.map(Object::into_value));
    }
    let release = match decode_release(&value, &chunks, MAX_DECODED_BYTES) {
        Ok(release) => release,
        Err(error) => return Ok(Err(error.to_string())),
    };
    let label = |name: &str| release.labels.get(name).cloned().unwrap_or_default();
    let status = release.info.status;
    Ok(Ok(Revision {
        number: release.version,
        bundle: label(BUNDLE_NAME),
        version: label(BUNDLE_VERSION),
        release: label(BUNDLE_RELEASE),
        status: status.as_str().to_owned(),
        outcome: match status {
            ReleaseStatus::Deployed => RevisionOutcome::Installed,
            ReleaseStatus::Superseded => RevisionOutcome::Replaced,
            _ => RevisionOutcome::Unfinished,
        },
        created: release.info.last_deployed.or_else(|| index.creation_timestamp()),
    }))
}

impl Revision {
    fn of_object_set(set: &Object) -> Option<Self> {
        let annotation = |name: &str| set.annotation(name).unwrap_or_default().to_owned();
        let state = set.str(&["spec", "lifecycleState"]).unwrap_or("Active");
        let has_succeeded = set.condition("Succeeded") == Some("True");
        let outcome = match (state, has_succeeded) {
            (_, false) => RevisionOutcome::Unfinished,
            ("Archived", true) => RevisionOutcome::Replaced,
            (_, true) => RevisionOutcome::Installed,
        };
        let status = match outcome {
            RevisionOutcome::Unfinished if state == "Active" => "RollingOut",
            _ => state,
        };
        Some(Self {
            number: set.i64(&["spec", "revision"])?,
            bundle: annotation(BUNDLE_NAME),
            version: annotation(BUNDLE_VERSION),
            release: annotation(BUNDLE_RELEASE),
            status: status.to_owned(),
            outcome,
            created: set.creation_timestamp(),
        })
    }

    /// The version with its release.
    fn version_text(&self) -> String {
        match &*self.release {
            "" => self.version.clone(),
            release => format!("{}-{release}", self.version),
        }
    }

    fn to_value(&self) -> Value {
        let mut value = json!({
            "revision": self.number, "bundle": self.bundle, "version": self.version,
            "status": self.status,
        });
        if !self.release.is_empty() {
            value["release"] = self.release.clone().into();
        }
        if let Some(created) = self.created {
            value["created"] = created.to_string().into();
        }
        value
    }
}

fn table(revisions: &[Revision], now: Timestamp) -> String {
    let row = |revision: &Revision| {
        let created = revision.created.map_or_else(
            || "<unknown>".to_owned(),
            |created| mainstay_clock::format_age(now.duration_since(created)),
        );
        let number = revision.number.to_string();
        [number, revision.bundle.clone(), revision.version_text(), revision.status.clone(), created]
            .map(|cell| escape_controls(&cell))
            .to_vec()
    };
    columns(&HEADER, &revisions.iter().map(row).collect::<Vec<_>>())
}

/// The revision that a rollback installs again: the given one, or the last one before the installed bundle.
///
/// # Errors
/// There is no such revision, or it was never installed.
pub(super) fn rollback_target<'h>(
    history: &'h History,
    extension: &str,
    installed: Option<&str>,
    number: Option<i64>,
) -> Result<&'h Revision, Cause> {
    let remedy = format!("see the revisions with: mainstay extension history {extension}");
    if let Some(number) = number {
        let found = history.revisions.iter().find(|revision| revision.number == number);
        let Some(found) = found else {
            return Err(Cause::new(format!("extension {extension:?} has no revision {number}"))
                .remedy(remedy));
        };
        if found.outcome == RevisionOutcome::Unfinished {
            let cause = format!(
                "revision {number} of extension {extension:?} was never installed completely"
            );
            return Err(Cause::new(cause).remedy(remedy));
        }
        return Ok(found);
    }
    let mut earlier = history.revisions.iter().rev().filter(|revision| {
        revision.outcome == RevisionOutcome::Replaced && Some(&*revision.bundle) != installed
    });
    earlier.next().ok_or_else(|| {
        let cause = format!("extension {extension:?} has no earlier revision with another bundle");
        Cause::new(cause).remedy(format!(
            "name a version instead: mainstay extension update {extension} --version VERSION --upgrade-constraint-policy SelfCertified"
        ))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn revision(number: i64, bundle: &str, outcome: RevisionOutcome) -> Revision {
        Revision {
            number,
            bundle: bundle.to_owned(),
            version: format!("{number}.0.0"),
            release: String::new(),
            status: "superseded".to_owned(),
            outcome,
            created: None,
        }
    }

    #[test]
    fn rollback_installs_the_last_other_bundle_that_was_installed() {
        use RevisionOutcome::{Installed, Replaced, Unfinished};
        let revisions = vec![
            revision(1, "a.v1", Replaced),
            revision(2, "a.v2", Replaced),
            revision(3, "a.v3", Unfinished),
            revision(4, "a.v4", Replaced),
            revision(5, "a.v4", Installed),
        ];
        let history = History { revisions, unreadable: Vec::new() };
        let target = |installed, number| {
            let target = rollback_target(&history, "tea", installed, number);
            target.map(|revision| revision.number).map_err(|cause| cause.what().to_owned())
        };
        assert_eq!(target(Some("a.v4"), None), Ok(2));
        assert_eq!(target(Some("a.v4"), Some(1)), Ok(1));
        let never = "revision 3 of extension \"tea\" was never installed completely";
        assert_eq!(target(Some("a.v4"), Some(3)), Err(never.to_owned()));
        assert_eq!(
            target(Some("a.v4"), Some(9)),
            Err("extension \"tea\" has no revision 9".to_owned())
        );
        let empty = History::default();
        assert!(rollback_target(&empty, "tea", None, None).is_err());
    }

    #[test]
    fn object_sets_tell_whether_they_were_installed() {
        let set = |state: &str, succeeded: &str| {
            let set = json!({
                "metadata": {"name": "tea-2", "annotations": {
                    BUNDLE_NAME: "teapot.v2", BUNDLE_VERSION: "2.0.0", BUNDLE_RELEASE: "7",
                }},
                "spec": {"revision": 2, "lifecycleState": state},
                "status": {"conditions": [{"type": "Succeeded", "status": succeeded}]},
            });
            Revision::of_object_set(&Object::from_value(set).unwrap()).unwrap()
        };
        let archived = set("Archived", "True");
        assert_eq!((archived.outcome, &*archived.status), (RevisionOutcome::Replaced, "Archived"));
        assert_eq!(archived.version_text(), "2.0.0-7");
        let active = set("Active", "False");
        assert_eq!((active.outcome, &*active.status), (RevisionOutcome::Unfinished, "RollingOut"));
    }
}
