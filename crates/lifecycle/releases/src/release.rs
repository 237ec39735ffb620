//! A release: one version of an installed extension, and its JSON in the order of Helm's Go types.

use crate::chart::{Chart, absent_if_null};
use crate::hook::ReleaseHook;
use jiff::Timestamp;
use mainstay_gocompat::json::{Html, JsonWriter, Numbers};
use serde::{Deserialize, Deserializer};
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use std::fmt;

/// A Helm release.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct Release {
    /// The name: that of the ClusterExtension.
    #[serde(deserialize_with = "absent_if_null")]
    pub name: String,
    /// Times, status and description.
    #[serde(deserialize_with = "absent_if_null")]
    pub info: ReleaseInfo,
    /// The chart that was installed.
    #[serde(deserialize_with = "absent_if_null")]
    pub chart: Chart,
    /// Values beside those of the chart; operator-controller gives none.
    #[serde(deserialize_with = "absent_if_null")]
    pub config: Map<String, Value>,
    /// The objects after post-rendering: one JSON object per line.
    #[serde(deserialize_with = "absent_if_null")]
    pub manifest: String,
    /// Objects that Helm runs as hooks, which are not in the manifest.
    #[serde(deserialize_with = "absent_if_null")]
    pub hooks: Vec<ReleaseHook>,
    /// The version of the release, from 1 on.
    #[serde(deserialize_with = "absent_if_null")]
    pub version: i64,
    /// The namespace of the extension.
    #[serde(deserialize_with = "absent_if_null")]
    pub namespace: String,
    /// Labels of the release: package, bundle, version, image. They are not labels of the Secret.
    #[serde(deserialize_with = "absent_if_null")]
    pub labels: BTreeMap<String, String>,
}

/// Times, status and description of a release.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct ReleaseInfo {
    /// When the first release of the extension was deployed.
    #[serde(deserialize_with = "time")]
    pub first_deployed: Option<Timestamp>,
    /// When this release was deployed.
    #[serde(deserialize_with = "time")]
    pub last_deployed: Option<Timestamp>,
    /// When its deletion began.
    #[serde(deserialize_with = "time")]
    pub deleted: Option<Timestamp>,
    /// What happened last, for people.
    #[serde(deserialize_with = "absent_if_null")]
    pub description: String,
    /// The status.
    #[serde(deserialize_with = "absent_if_null")]
    pub status: ReleaseStatus,
    /// The rendered notes of a Helm chart.
    #[serde(deserialize_with = "absent_if_null")]
    pub notes: String,
    /// The objects of the release as found in the cluster; operator-controller never stores them.
    #[serde(deserialize_with = "absent_if_null")]
    pub resources: Map<String, Value>,
}

/// The status of a release.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Deserialize)]
#[serde(from = "String")]
pub enum ReleaseStatus {
    /// A status that Helm does not know.
    #[default]
    Unknown,
    /// All objects were applied.
    Deployed,
    /// All objects were deleted.
    Uninstalled,
    /// A later release was deployed.
    Superseded,
    /// An object could not be applied.
    Failed,
    /// The deletion of the objects has begun.
    Uninstalling,
    /// The first installation has begun.
    PendingInstall,
    /// An upgrade has begun.
    PendingUpgrade,
    /// A rollback has begun.
    PendingRollback,
}

impl ReleaseStatus {
    const ALL: [Self; 9] = [
        Self::Unknown,
        Self::Deployed,
        Self::Uninstalled,
        Self::Superseded,
        Self::Failed,
        Self::Uninstalling,
        Self::PendingInstall,
        Self::PendingUpgrade,
        Self::PendingRollback,
    ];

    /// The value of the label `status`.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Unknown => "unknown",
            Self::Deployed => "deployed",
            Self::Uninstalled => "uninstalled",
            Self::Superseded => "superseded",
            Self::Failed => "failed",
            Self::Uninstalling => "uninstalling",
            Self::PendingInstall => "pending-install",
            Self::PendingUpgrade => "pending-upgrade",
            Self::PendingRollback => "pending-rollback",
        }
    }

    /// Reads the value of the label `status`.
    pub fn from_label(label: &str) -> Self {
        Self::ALL.into_iter().find(|status| status.as_str() == label).unwrap_or_default()
    }

    /// Whether an operation has begun and not ended.
    pub const fn is_pending(self) -> bool {
        matches!(self, Self::PendingInstall | Self::PendingUpgrade | Self::PendingRollback)
    }
}

impl From<String> for ReleaseStatus {
    fn from(text: String) -> Self {
        Self::from_label(&text)
    }
}

impl fmt::Display for ReleaseStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl Release {
    /// The JSON that upstream's storage driver compresses, with its final line break.
    pub fn to_json(&self) -> String {
        let mut out = String::new();
        let mut writer = JsonWriter::compact(&mut out, Html::Escaped, Numbers::Float);
        writer.open('{');
        text_unless_empty(&mut writer, "name", &self.name);
        writer.key("info");
        self.info.write(&mut writer);
        writer.key("chart");
        self.chart.write(&mut writer);
        if !self.config.is_empty() {
            writer.key("config");
            writer.object(&self.config);
        }
        text_unless_empty(&mut writer, "manifest", &self.manifest);
        if !self.hooks.is_empty() {
            writer.key("hooks");
            writer.open('[');
            for hook in &self.hooks {
                hook.write(&mut writer);
            }
            writer.close(']');
        }
        if self.version != 0 {
            writer.key("version");
            writer.raw(&self.version.to_string());
        }
        text_unless_empty(&mut writer, "namespace", &self.namespace);
        writer.key("labels");
        texts(&mut writer, &self.labels);
        writer.close('}');
        out.push('\n');
        out
    }

    /// The objects of the manifest, one for each line.
    ///
    /// # Errors
    /// The manifest is not JSON. The manifests of operator-controller are.
    pub fn objects(&self) -> Result<Vec<Value>, serde_json::Error> {
        serde_json::Deserializer::from_str(&self.manifest).into_iter().collect()
    }
}

impl ReleaseInfo {
    fn write(&self, writer: &mut JsonWriter<'_>) {
        writer.open('{');
        // Go never omits a struct, and Helm writes a zero time as an empty text.
        for (name, time) in [
            ("first_deployed", self.first_deployed),
            ("last_deployed", self.last_deployed),
            ("deleted", self.deleted),
        ] {
            writer.key(name);
            writer.text(&time_text(time));
        }
        text_unless_empty(writer, "description", &self.description);
        writer.key("status");
        writer.text(self.status.as_str());
        text_unless_empty(writer, "notes", &self.notes);
        if !self.resources.is_empty() {
            writer.key("resources");
            writer.object(&self.resources);
        }
        writer.close('}');
    }
}

/// A time as Helm writes it: RFC 3339, the shortest fraction; empty if absent.
pub(crate) fn time_text(time: Option<Timestamp>) -> String {
    time.map(|time| time.to_string()).unwrap_or_default()
}

/// Writes a field that Go omits if the text is empty.
pub(crate) fn text_unless_empty(writer: &mut JsonWriter<'_>, name: &str, value: &str) {
    if !value.is_empty() {
        writer.key(name);
        writer.text(value);
    }
}

/// Writes a list of texts, which Go omits if it is empty.
pub(crate) fn texts_unless_empty(writer: &mut JsonWriter<'_>, name: &str, values: &[String]) {
    if values.is_empty() {
        return;
    }
    writer.key(name);
    writer.open('[');
    for value in values {
        writer.text(value);
    }
    writer.close(']');
}

/// Writes a map of texts.
pub(crate) fn texts(writer: &mut JsonWriter<'_>, texts: &BTreeMap<String, String>) {
    writer.open('{');
    for (name, value) in texts {
        writer.key(name);
        writer.text(value);
    }
    writer.close('}');
}

/// Reads a time of Helm, which may be empty.
pub(crate) fn time<'de, D: Deserializer<'de>>(decoder: D) -> Result<Option<Timestamp>, D::Error> {
    match Option::<String>::deserialize(decoder)?.filter(|text| !text.is_empty()) {
        None => Ok(None),
        // Before version 3, the zero time was written out.
        Some(text) if text.starts_with("0001-01-01T00:00:00") => Ok(None),
        Some(text) => text.parse().map(Some).map_err(serde::de::Error::custom),
    }
}
