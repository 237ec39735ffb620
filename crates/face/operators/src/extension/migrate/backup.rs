//! Backups: what a conversion changes or deletes, as YAML files in a folder of their own.
//!
//! ```text
//! DIR/migration.json               which Subscription, which ClusterExtension
//! DIR/subscription.yaml, clusterserviceversion.yaml, operatorgroup.yaml
//! DIR/installplans/NAME.yaml
//! DIR/objects/KIND-NAME.yaml       the objects of the operator
//! ```
//!
//! The folder appears whole or not at all, before the first write to the cluster.

use mainstay_cause::{Cause, FileLocation};
use mainstay_command::exit::CommandFailure;
use mainstay_files::{Durability, PrivateFolder};
use mainstay_gocompat::io_error_text;
use mainstay_object::Object;
use mainstay_yaml::Options;
use serde_json::{Value, json};
use std::io;
use std::path::{Path, PathBuf};

const MANIFEST: &str = "migration.json";
/// The field of the manifest with `namespace/name` of the Subscription.
const MANIFEST_SUBSCRIPTION: &str = "subscription";
const SUBSCRIPTION: &str = "subscription.yaml";
const GROUP: &str = "operatorgroup.yaml";
/// The largest file of a backup, in bytes: an object of a cluster is smaller.
const MAX_BYTES: u64 = 16 << 20;

/// What is backed up.
pub(super) struct BackupContent<'a> {
    /// The name of the ClusterExtension.
    pub(super) extension: &'a str,
    pub(super) subscription: &'a Object,
    pub(super) csv: &'a Object,
    pub(super) group: Option<&'a Object>,
    pub(super) plans: &'a [Object],
    pub(super) objects: Vec<&'a Object>,
}

/// A backup that was read again.
pub(super) struct Backup {
    /// The name of the ClusterExtension.
    pub(super) extension: String,
    /// The Subscription as it was.
    pub(super) subscription: Object,
    /// The OperatorGroup as it was.
    pub(super) group: Option<Object>,
    /// The name of the ClusterServiceVersion.
    pub(super) csv: String,
}

impl BackupContent<'_> {
    /// Writes the folder. One of an earlier attempt at the same Subscription stays as it is.
    ///
    /// # Errors
    /// The folder is in use, or cannot be written.
    pub(super) fn write(&self, folder: &Path) -> Result<(), CommandFailure> {
        if folder.join(MANIFEST).exists() {
            let existing = read_manifest(folder)?;
            if existing[MANIFEST_SUBSCRIPTION] == self.reference() {
                return Ok(());
            }
        }
        let is_used = folder.read_dir().is_ok_and(|mut entries| entries.next().is_some());
        if is_used || folder.is_file() {
            let cause = Cause::new("it holds something else than a backup of this Subscription");
            let cause = cause.at(FileLocation::file(folder));
            return Err(CommandFailure::usage(cause.remedy("name a new folder with --backup DIR")));
        }
        self.try_write(folder).map_err(|error| {
            let cause =
                Cause::new(format!("the backup cannot be written: {}", io_error_text(&error)));
            let cause = cause.at(FileLocation::file(folder));
            CommandFailure::from(cause.remedy("name a folder on a disk with space: --backup DIR"))
        })
    }

    fn reference(&self) -> String {
        reference(self.subscription.namespace(), self.subscription.name())
    }

    fn try_write(&self, folder: &Path) -> io::Result<()> {
        let parent = folder.parent().filter(|parent| !parent.as_os_str().is_empty());
        let parent = parent.unwrap_or(Path::new("."));
        std::fs::create_dir_all(parent)?;
        let new = PrivateFolder::create_in(parent, ".mainstay-backup-")?;
        let write = |name: PathBuf, value: &Value| {
            let text = mainstay_yaml::to_string(value);
            mainstay_files::replace(&new.path().join(name), text.as_bytes(), Durability::PowerCut)
        };
        let write_object = |name: PathBuf, object: &Object| write(name, &object.to_value());
        write_object(SUBSCRIPTION.into(), self.subscription)?;
        write_object("clusterserviceversion.yaml".into(), self.csv)?;
        if let Some(group) = self.group {
            write_object(GROUP.into(), group)?;
        }
        for folder in ["installplans", "objects"] {
            std::fs::create_dir(new.path().join(folder))?;
        }
        for plan in self.plans {
            write_object(format!("installplans/{}.yaml", plan.name()).into(), plan)?;
        }
        for object in &self.objects {
            let kind = object.kind().to_lowercase();
            write_object(format!("objects/{kind}-{}.yaml", object.name()).into(), object)?;
        }
        let manifest = json!({
            MANIFEST_SUBSCRIPTION: self.reference(),
            "extension": self.extension,
            "clusterServiceVersion": self.csv.name(),
        });
        let text = format!("{manifest:#}\n");
        let path = new.path().join(MANIFEST);
        mainstay_files::replace(&path, text.as_bytes(), Durability::PowerCut)?;
        std::fs::rename(new.path(), folder)
    }
}

fn reference(namespace: &str, subscription: &str) -> String {
    format!("{namespace}/{subscription}")
}

/// Whether a folder holds the backup of a Subscription.
pub(super) fn is_of(folder: &Path, namespace: &str, subscription: &str) -> bool {
    let manifest = read_manifest(folder);
    manifest
        .is_ok_and(|manifest| manifest[MANIFEST_SUBSCRIPTION] == reference(namespace, subscription))
}

/// Whether an argument names the folder of a backup, and no ClusterExtension.
pub(super) fn is_folder(folder: &Path, argument: &str) -> bool {
    argument.contains('/') || folder.join(argument).join(MANIFEST).exists()
}

/// Reads the backup in a folder.
///
/// # Errors
/// The folder has none, or a file is damaged.
pub(super) fn read(folder: &Path) -> Result<Backup, CommandFailure> {
    let manifest = read_manifest(folder)?;
    let text = |field: &str| manifest[field].as_str().unwrap_or_default().to_owned();
    let group = folder.join(GROUP);
    let group = if group.exists() { Some(read_object(&group)?) } else { None };
    Ok(Backup {
        extension: text("extension"),
        subscription: read_object(&folder.join(SUBSCRIPTION))?,
        group,
        csv: text("clusterServiceVersion"),
    })
}

fn read_manifest(folder: &Path) -> Result<Value, CommandFailure> {
    let path = folder.join(MANIFEST);
    let bytes = mainstay_files::read(&path, MAX_BYTES)
        .map_err(|error| unreadable(&path, io_error_text(&error)))?;
    serde_json::from_slice(&bytes).map_err(|error| unreadable(&path, error.to_string()))
}

fn read_object(path: &Path) -> Result<Object, CommandFailure> {
    let bytes = mainstay_files::read(path, MAX_BYTES)
        .map_err(|error| unreadable(path, io_error_text(&error)))?;
    let value = mainstay_yaml::one(&bytes, &Options::default())
        .map_err(|error| unreadable(path, error.to_string()))?;
    Object::from_value(value).map_err(|error| unreadable(path, error.to_string()))
}

fn unreadable(path: &Path, why: String) -> CommandFailure {
    let cause = Cause::new(why).at(FileLocation::file(path));
    let remedy = "name the folder that `migrate convert --backup DIR` wrote, or a ClusterExtension";
    CommandFailure::usage(cause.remedy(remedy))
}
