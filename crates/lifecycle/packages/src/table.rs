//! Representations of PackageManifests: complete objects, rows of a Table, or metadata only.

use crate::accept::Format;
use crate::manifest::{self, PackageSummary};
use crate::query::Query;
use crate::select::SelectedPackage;
use crate::{API_VERSION, KIND};
use jiff::Timestamp;
use mainstay_object::Status;
use serde_json::{Value, json};
use std::sync::Arc;

/// A PackageManifest without the channels of its status.
#[derive(Clone)]
pub(crate) struct PackageManifest {
    pub(crate) summary: Arc<PackageSummary>,
    pub(crate) namespace: Arc<str>,
    pub(crate) revision: u64,
}

impl SelectedPackage {
    pub(crate) fn manifest(&self) -> PackageManifest {
        let (summary, namespace) = (Arc::clone(&self.summary), Arc::clone(&self.namespace));
        PackageManifest { summary, namespace, revision: self.entry.revision }
    }
}

impl PackageManifest {
    fn metadata(&self) -> Value {
        json!({
            "creationTimestamp": self.summary.catalog_info.created,
            "labels": self.summary.labels,
            "name": &*self.summary.name,
            "namespace": &*self.namespace,
            "resourceVersion": self.revision.to_string(),
        })
    }

    /// The complete object, with a status in JSON.
    pub(crate) fn object(&self, status: &[u8]) -> Vec<u8> {
        let metadata = self.metadata();
        let head = format!(
            "{{\"apiVersion\":\"{API_VERSION}\",\"kind\":\"{KIND}\",\"metadata\":{metadata},\"spec\":{{}},\"status\":"
        );
        [head.as_bytes(), status, b"}"].concat()
    }

    /// The status for a DELETED event: the channels of a removed package are not known any more.
    pub(crate) fn status_without_channels(&self) -> Vec<u8> {
        manifest::with_channels(&self.summary, &json!([])).to_string().into_bytes()
    }

    fn partial(&self, version: &str) -> Value {
        json!({
            "apiVersion": format!("meta.k8s.io/{version}"),
            "kind": "PartialObjectMetadata",
            "metadata": self.metadata(),
        })
    }

    fn age(&self, now: Timestamp) -> String {
        let created =
            self.summary.catalog_info.created.as_deref().and_then(|text| text.parse().ok());
        created.map_or_else(
            || "<unknown>".to_owned(),
            |time: Timestamp| mainstay_clock::format_age(now.duration_since(time)),
        )
    }
}

/// The parameter `includeObject`: which part of the object a row of a Table has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Include {
    Nothing,
    Metadata,
    Object,
}

/// The requested representation of packages.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Representation {
    pub(crate) format: Format,
    include: Include,
}

impl Representation {
    pub(crate) fn parse(format: Format, query: &Query) -> Result<Self, Status> {
        let include = match query.text("includeObject") {
            "" | "Metadata" => Include::Metadata,
            "None" => Include::Nothing,
            "Object" => Include::Object,
            other => {
                return Err(Status::bad_request(format!(
                    "includeObject is {other:?}, and has to be None, Metadata or Object"
                )));
            }
        };
        Ok(Self { format, include })
    }

    /// Whether it includes the status of packages.
    pub(crate) fn needs_status(self) -> bool {
        match self.format {
            Format::Object => true,
            Format::Table(_) => self.include == Include::Object,
            Format::Metadata(_) => false,
        }
    }

    /// One package as JSON; `with_columns` adds the column definitions to a Table. The status is used only
    /// if [`Self::needs_status`] says so.
    pub(crate) fn render(
        self,
        manifest: &PackageManifest,
        status: &[u8],
        with_columns: bool,
        now: Timestamp,
    ) -> Vec<u8> {
        match self.format {
            Format::Object => manifest.object(status),
            Format::Metadata(version) => manifest.partial(version).to_string().into_bytes(),
            Format::Table(version) => {
                let row = self.row(manifest, status, version, now);
                table(version, manifest.revision, &[row], with_columns).into_bytes()
            }
        }
    }

    /// The object of a bookmark as JSON: it has a resourceVersion only.
    pub(crate) fn bookmark(self, revision: u64, initial_end: bool, with_columns: bool) -> String {
        let mut metadata =
            json!({"creationTimestamp": null, "resourceVersion": revision.to_string()});
        if initial_end {
            metadata["annotations"] = json!({"k8s.io/initial-events-end": "true"});
        }
        let bookmark_object = |version: &str, kind: &str| json!({"apiVersion": version, "kind": kind, "metadata": metadata});
        match self.format {
            Format::Object => bookmark_object(API_VERSION, KIND).to_string(),
            Format::Metadata(version) => {
                bookmark_object(&format!("meta.k8s.io/{version}"), "PartialObjectMetadata")
                    .to_string()
            }
            Format::Table(version) => {
                let object =
                    bookmark_object(&format!("meta.k8s.io/{version}"), "PartialObjectMetadata");
                let row = json!({"cells": ["", "", "<unknown>"], "object": object}).to_string();
                table(version, revision, &[row], with_columns)
            }
        }
    }

    /// A row of a Table as JSON.
    pub(crate) fn row(
        self,
        manifest: &PackageManifest,
        status: &[u8],
        version: &str,
        now: Timestamp,
    ) -> String {
        let cells = json!([
            &*manifest.summary.name,
            manifest.summary.catalog_info.display_name,
            manifest.age(now)
        ]);
        let object = match self.include {
            Include::Nothing => "null".to_owned(),
            Include::Metadata => manifest.partial(version).to_string(),
            // The bytes come from strings.
            Include::Object => String::from_utf8_lossy(&manifest.object(status)).into_owned(),
        };
        format!("{{\"cells\":{cells},\"object\":{object}}}")
    }
}

/// A Table as JSON, of rows in JSON.
pub(crate) fn table(version: &str, revision: u64, rows: &[String], with_columns: bool) -> String {
    let column = |name: &str, format: &str, description: &str| json!({"name": name, "type": "string", "format": format, "description": description, "priority": 0});
    let columns = if with_columns {
        json!([
            column("Name", "name", "The name of the package, by which Subscriptions ask for it."),
            column("Catalog", "", "The name for people of the catalog that has the package."),
            column("Age", "", "How long the catalog has been there."),
        ])
    } else {
        json!([])
    };
    format!(
        "{{\"kind\":\"Table\",\"apiVersion\":\"meta.k8s.io/{version}\",\"metadata\":{{\"resourceVersion\":\"{revision}\"}},\"columnDefinitions\":{columns},\"rows\":[{}]}}",
        rows.join(",")
    )
}
