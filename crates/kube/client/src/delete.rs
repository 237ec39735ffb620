//! Delete options: propagation, preconditions, grace period.

use mainstay_object::Object;
use serde_json::{Map, Value, json};

/// The fate of the dependents of a deleted object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Propagation {
    /// Dependents are deleted afterwards.
    Background,
    /// Dependents are deleted first; the owner waits and is visibly terminating.
    Foreground,
    /// Dependents stay and lose the owner reference.
    Orphan,
}

impl Propagation {
    /// The text of the API.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Background => "Background",
            Self::Foreground => "Foreground",
            Self::Orphan => "Orphan",
        }
    }
}

/// Preconditions of a deletion; otherwise the result is a conflict.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Preconditions {
    /// The object must have this uid.
    pub uid: Option<String>,
    /// The object must be unchanged since this revision.
    pub resource_version: Option<String>,
}

/// The options of a deletion.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DeleteOptions {
    /// The fate of dependents; none leaves it to the server (background for most kinds).
    pub propagation: Option<Propagation>,
    /// The preconditions.
    pub preconditions: Preconditions,
    /// Seconds between the request and the end of a Pod; none uses the Pod's own grace period.
    pub grace_period_seconds: Option<i64>,
    /// Whether the server runs all checks and deletes nothing.
    pub dry_run: bool,
}

impl DeleteOptions {
    /// Deletes only the object of this uid, never a later one of the same name.
    pub fn uid(uid: impl Into<String>) -> Self {
        let preconditions = Preconditions { uid: Some(uid.into()), resource_version: None };
        Self { preconditions, ..Self::default() }
    }

    /// Deletes only this object at this revision.
    pub fn exactly(object: &Object) -> Self {
        let preconditions = Preconditions {
            uid: Some(object.uid().to_owned()),
            resource_version: Some(object.resource_version().to_owned()),
        };
        Self { preconditions, ..Self::default() }
    }

    /// Sets the propagation policy.
    #[must_use]
    pub const fn propagation(mut self, propagation: Propagation) -> Self {
        self.propagation = Some(propagation);
        self
    }

    /// Requires the object to be unchanged since a revision.
    #[must_use]
    pub fn resource_version(mut self, resource_version: impl Into<String>) -> Self {
        self.preconditions.resource_version = Some(resource_version.into());
        self
    }

    /// Sets the grace period, in seconds.
    #[must_use]
    pub const fn grace_period(mut self, seconds: i64) -> Self {
        self.grace_period_seconds = Some(seconds);
        self
    }

    /// Sets whether the server runs all checks and deletes nothing.
    #[must_use]
    pub const fn dry_run(mut self, dry_run: bool) -> Self {
        self.dry_run = dry_run;
        self
    }

    pub(crate) fn to_value(&self) -> Value {
        let mut body = json!({"apiVersion": "v1", "kind": "DeleteOptions"});
        if let Some(propagation) = self.propagation {
            body["propagationPolicy"] = propagation.as_str().into();
        }
        let mut preconditions = Map::new();
        if let Some(uid) = &self.preconditions.uid {
            preconditions.insert("uid".to_owned(), uid.clone().into());
        }
        if let Some(revision) = &self.preconditions.resource_version {
            preconditions.insert("resourceVersion".to_owned(), revision.clone().into());
        }
        if !preconditions.is_empty() {
            body["preconditions"] = Value::Object(preconditions);
        }
        if let Some(seconds) = self.grace_period_seconds {
            body["gracePeriodSeconds"] = seconds.into();
        }
        if self.dry_run {
            // API servers ignore the query of a deletion that has a body: it would be a real one.
            body["dryRun"] = json!(["All"]);
        }
        body
    }
}
