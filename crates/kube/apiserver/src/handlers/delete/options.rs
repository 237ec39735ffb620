//! `DeleteOptions`, from the body or from the query; a body takes precedence.

use crate::handlers::decode;
use crate::handlers::request::Request;
use mainstay_http::query::parse_int;
use mainstay_object::{FieldError, FieldPath, Status};
use serde_json::{Value, json};

/// The treatment of dependents.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::handlers) enum Propagation {
    Orphan,
    Foreground,
    Background,
}

/// `metav1.DeleteOptions`.
#[derive(Clone, Debug, Default)]
pub(in crate::handlers) struct DeleteOptions {
    /// The treatment of dependents, if the client set one of the two fields.
    pub(super) propagation: Option<Propagation>,
    /// The precondition on the uid.
    pub(super) uid: Option<String>,
    /// The precondition on the revision.
    pub(super) version: Option<String>,
    /// Whether the deletion is a dry run.
    pub(super) dry_run: bool,
    /// The grace period of a pod, in seconds.
    pub(super) grace: Option<i64>,
    /// Whether `orphanDependents` was false: the response is then 202.
    pub(super) cascades: bool,
    /// The deprecated field `orphanDependents`.
    orphans: Option<bool>,
}

/// The options as sent.
#[derive(Default)]
struct RawOptions {
    policy: Option<String>,
    orphans: Option<bool>,
    dry_run: Vec<String>,
    grace: Option<i64>,
    uid: Option<String>,
    version: Option<String>,
}

impl DeleteOptions {
    /// Reads the options of a request. 400 if they are malformed, 422 with all errors if they are
    /// invalid.
    pub(super) fn read(request: &Request<'_>) -> Result<Self, Status> {
        if request.body.is_empty() {
            return RawOptions::from_query(request)?.validate();
        }
        Self::from_value(&decode::options(request)?)
    }

    /// Reads a decoded object.
    pub(in crate::handlers) fn from_value(body: &Value) -> Result<Self, Status> {
        RawOptions::from_value(body).validate()
    }

    /// Makes it a dry run if `dry_run` is set.
    #[must_use]
    pub(in crate::handlers) const fn with_dry_run(mut self, dry_run: bool) -> Self {
        self.dry_run = self.dry_run || dry_run;
        self
    }

    /// The options as admission reviews contain them.
    pub(super) fn to_value(&self) -> Value {
        let mut value = json!({"apiVersion": "meta.k8s.io/v1", "kind": "DeleteOptions"});
        if let Some(seconds) = self.grace {
            value["gracePeriodSeconds"] = seconds.into();
        }
        for (field, text) in [("uid", &self.uid), ("resourceVersion", &self.version)] {
            if let Some(text) = text {
                value["preconditions"][field] = text.as_str().into();
            }
        }
        match (self.orphans, self.propagation) {
            (Some(orphans), _) => value["orphanDependents"] = orphans.into(),
            (None, Some(Propagation::Orphan)) => value["propagationPolicy"] = "Orphan".into(),
            (None, Some(Propagation::Foreground)) => {
                value["propagationPolicy"] = "Foreground".into();
            }
            (None, Some(Propagation::Background)) => {
                value["propagationPolicy"] = "Background".into();
            }
            (None, None) => {}
        }
        if self.dry_run {
            value["dryRun"] = json!(["All"]);
        }
        value
    }

    /// Updates the precondition on the revision after an own write to the object.
    pub(in crate::handlers) fn set_expected_revision(&mut self, revision: u64) {
        if self.version.as_deref().is_some_and(|version| !version.is_empty()) {
            self.version = Some(revision.to_string());
        }
    }

    /// Whether it is a dry run.
    pub(in crate::handlers) const fn is_dry(&self) -> bool {
        self.dry_run
    }
}

impl RawOptions {
    fn from_query(request: &Request<'_>) -> Result<Self, Status> {
        let query = &request.query;
        Ok(Self {
            policy: query.raw("propagationPolicy").map(str::to_owned),
            orphans: query.optional_flag("orphanDependents"),
            dry_run: query.all("dryRun").map(str::to_owned).collect(),
            grace: query.raw("gracePeriodSeconds").map(parse_int).transpose()?,
            ..Self::default()
        })
    }

    fn from_value(body: &Value) -> Self {
        let text = |path: &str| body.pointer(path).and_then(Value::as_str).map(str::to_owned);
        let dry_run = body.get("dryRun").and_then(Value::as_array).into_iter().flatten();
        Self {
            policy: text("/propagationPolicy"),
            orphans: body.get("orphanDependents").and_then(Value::as_bool),
            dry_run: dry_run.map(|value| value.as_str().unwrap_or_default().to_owned()).collect(),
            grace: body.get("gracePeriodSeconds").and_then(Value::as_i64),
            uid: text("/preconditions/uid"),
            version: text("/preconditions/resourceVersion"),
        }
    }

    fn validate(self) -> Result<DeleteOptions, Status> {
        let mut errors = Vec::new();
        let field = FieldPath::new("propagationPolicy");
        let policy = self.policy.as_deref();
        if let (Some(policy), Some(_)) = (policy, self.orphans) {
            let why = "orphanDependents and deletionPropagation cannot be both set";
            errors.push(FieldError::invalid(&field, policy, why));
        }
        let propagation = match policy {
            Some("Orphan") => Some(Propagation::Orphan),
            Some("Foreground") => Some(Propagation::Foreground),
            Some("Background") => Some(Propagation::Background),
            Some(other) => {
                let allowed = ["Foreground", "Background", "Orphan", "nil"];
                errors.push(FieldError::not_supported(&field, other, &allowed));
                None
            }
            None => None,
        };
        if self.dry_run.iter().any(|value| value != "All") {
            let field = FieldPath::new("dryRun");
            errors.push(FieldError::not_supported(&field, self.dry_run.clone(), &["All"]));
        }
        if !errors.is_empty() {
            return Err(Status::invalid("meta.k8s.io", "DeleteOptions", "", &errors));
        }
        let propagation_of =
            |orphans| if orphans { Propagation::Orphan } else { Propagation::Background };
        Ok(DeleteOptions {
            propagation: propagation.or(self.orphans.map(propagation_of)),
            uid: self.uid,
            version: self.version,
            dry_run: !self.dry_run.is_empty(),
            grace: self.grace,
            cascades: self.orphans == Some(false),
            orphans: self.orphans,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn all_invalid_delete_options_are_reported_at_once() {
        let invalid = json!({"orphanDependents": true, "propagationPolicy": "X", "dryRun": ["Y"]});
        let status = DeleteOptions::from_value(&invalid).unwrap_err();
        assert_eq!(status.details.causes.len(), 3);
        assert_eq!(status.details.kind, "DeleteOptions");
    }

    #[test]
    fn orphan_dependents_sets_the_propagation_policy() {
        for (orphans, propagation) in
            [(true, Propagation::Orphan), (false, Propagation::Background)]
        {
            let options = DeleteOptions::from_value(&json!({"orphanDependents": orphans})).unwrap();
            assert_eq!(options.propagation, Some(propagation));
            assert_eq!(options.cascades, !orphans);
        }
    }
}
