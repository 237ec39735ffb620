//! Packages as they are written: as objects, as rows of a table, as metadata alone.

use crate::accept::Form;
use crate::manifest::{self, Brief};
use crate::query::Query;
use crate::select::Item;
use crate::{API_VERSION, KIND};
use jiff::Timestamp;
use mainstay_object::Status;
use serde_json::{Value, json};
use std::sync::Arc;

/// What a package is seen as, without its channels.
#[derive(Clone)]
pub(crate) struct Seen {
    pub(crate) brief: Arc<Brief>,
    pub(crate) namespace: Arc<str>,
    pub(crate) revision: u64,
}

impl Item {
    pub(crate) fn seen(&self) -> Seen {
        let (brief, namespace) = (Arc::clone(&self.brief), Arc::clone(&self.namespace));
        Seen { brief, namespace, revision: self.shown.revision }
    }
}

impl Seen {
    fn metadata(&self) -> Value {
        json!({
            "creationTimestamp": self.brief.facts.created,
            "labels": self.brief.labels,
            "name": &*self.brief.name,
            "namespace": &*self.namespace,
            "resourceVersion": self.revision.to_string(),
        })
    }

    /// The whole object, with a status that is JSON already.
    pub(crate) fn object(&self, status: &[u8]) -> Vec<u8> {
        let metadata = self.metadata();
        let head = format!(
            "{{\"apiVersion\":\"{API_VERSION}\",\"kind\":\"{KIND}\",\"metadata\":{metadata},\"spec\":{{}},\"status\":"
        );
        [head.as_bytes(), status, b"}"].concat()
    }

    /// What is left to say of one that is gone: everything but its channels.
    pub(crate) fn last_status(&self) -> Vec<u8> {
        manifest::with_channels(&self.brief, &json!([])).to_string().into_bytes()
    }

    fn partial(&self, version: &str) -> Value {
        json!({
            "apiVersion": format!("meta.k8s.io/{version}"),
            "kind": "PartialObjectMetadata",
            "metadata": self.metadata(),
        })
    }

    fn age(&self, now: Timestamp) -> String {
        let created = self.brief.facts.created.as_deref().and_then(|text| text.parse().ok());
        created.map_or_else(
            || "<unknown>".to_owned(),
            |time: Timestamp| mainstay_clock::human(now.duration_since(time)),
        )
    }
}

/// What rows of a table carry of their objects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Include {
    Nothing,
    Metadata,
    Object,
}

/// How an answer shows packages.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Shape {
    pub(crate) form: Form,
    include: Include,
}

impl Shape {
    pub(crate) fn read(form: Form, query: &Query) -> Result<Self, Status> {
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
        Ok(Self { form, include })
    }

    /// Whether it shows all of an object.
    pub(crate) fn needs_status(self) -> bool {
        match self.form {
            Form::Whole => true,
            Form::Table(_) => self.include == Include::Object,
            Form::Metadata(_) => false,
        }
    }

    /// One package as JSON; `titled` asks for a table with titles. The status is only looked at if it
    /// is needed.
    pub(crate) fn one(self, seen: &Seen, status: &[u8], titled: bool, now: Timestamp) -> Vec<u8> {
        match self.form {
            Form::Whole => seen.object(status),
            Form::Metadata(version) => seen.partial(version).to_string().into_bytes(),
            Form::Table(version) => {
                let row = self.row(seen, status, version, now);
                table(version, seen.revision, &[row], titled).into_bytes()
            }
        }
    }

    /// A bookmark as JSON: an object with nothing but a revision.
    pub(crate) fn mark(self, revision: u64, initial_end: bool, titled: bool) -> String {
        let mut metadata =
            json!({"creationTimestamp": null, "resourceVersion": revision.to_string()});
        if initial_end {
            metadata["annotations"] = json!({"k8s.io/initial-events-end": "true"});
        }
        let named = |version: &str, kind: &str| json!({"apiVersion": version, "kind": kind, "metadata": metadata});
        match self.form {
            Form::Whole => named(API_VERSION, KIND).to_string(),
            Form::Metadata(version) => {
                named(&format!("meta.k8s.io/{version}"), "PartialObjectMetadata").to_string()
            }
            Form::Table(version) => {
                let object = named(&format!("meta.k8s.io/{version}"), "PartialObjectMetadata");
                let row = json!({"cells": ["", "", "<unknown>"], "object": object}).to_string();
                table(version, revision, &[row], titled)
            }
        }
    }

    /// A row of a table as JSON.
    pub(crate) fn row(self, seen: &Seen, status: &[u8], version: &str, now: Timestamp) -> String {
        let cells = json!([&*seen.brief.name, seen.brief.facts.display_name, seen.age(now)]);
        let object = match self.include {
            Include::Nothing => "null".to_owned(),
            Include::Metadata => seen.partial(version).to_string(),
            // It is made of texts.
            Include::Object => String::from_utf8_lossy(&seen.object(status)).into_owned(),
        };
        format!("{{\"cells\":{cells},\"object\":{object}}}")
    }
}

/// A table of rows that are JSON already.
pub(crate) fn table(version: &str, revision: u64, rows: &[String], titled: bool) -> String {
    let column = |name: &str, format: &str, description: &str| json!({"name": name, "type": "string", "format": format, "description": description, "priority": 0});
    let columns = if titled {
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
