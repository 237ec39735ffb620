//! `DeleteOptions`, from the body or from the query: a body hides the query.

use crate::handlers::decode;
use crate::handlers::request::Request;
use mainstay_http::query::parse_int;
use mainstay_object::{FieldError, FieldPath, Status};
use serde_json::{Value, json};

/// What becomes of dependents.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::handlers) enum Propagation {
    Orphan,
    Foreground,
    Background,
}

/// `metav1.DeleteOptions`.
#[derive(Clone, Debug, Default)]
pub(in crate::handlers) struct Options {
    /// What becomes of dependents, if the client says so in either way.
    pub(super) propagation: Option<Propagation>,
    /// The uid that the object must have.
    pub(super) uid: Option<String>,
    /// The revision that the object must have.
    pub(super) version: Option<String>,
    /// Whether nothing is to be changed.
    pub(super) dry_run: bool,
    /// Seconds between the request and the end of a pod.
    pub(super) grace: Option<i64>,
    /// Whether the old way of asking for cascading was used: it answers 202.
    pub(super) cascades: bool,
    /// What the old way of asking said.
    orphans: Option<bool>,
}

/// The options as they were given.
#[derive(Default)]
struct Given {
    policy: Option<String>,
    orphans: Option<bool>,
    dry_run: Vec<String>,
    grace: Option<i64>,
    uid: Option<String>,
    version: Option<String>,
}

impl Options {
    /// Reads the options of a request. 400 if they cannot be read, 422 naming all that is wrong.
    pub(super) fn read(request: &Request<'_>) -> Result<Self, Status> {
        if request.body.is_empty() {
            return Given::of_query(request)?.settle();
        }
        Self::from_value(&decode::options(request)?)
    }

    /// Reads an object that has been decoded.
    pub(in crate::handlers) fn from_value(body: &Value) -> Result<Self, Status> {
        Given::of_value(body).settle()
    }

    /// Makes it a deletion that changes nothing.
    #[must_use]
    pub(in crate::handlers) const fn dry(mut self, dry: bool) -> Self {
        self.dry_run = self.dry_run || dry;
        self
    }

    /// The options as reviews show them.
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

    /// The object that is meant was written by whoever deletes it.
    pub(in crate::handlers) fn follow(&mut self, revision: u64) {
        if self.version.as_deref().is_some_and(|version| !version.is_empty()) {
            self.version = Some(revision.to_string());
        }
    }

    /// Whether it changes nothing.
    pub(in crate::handlers) const fn is_dry(&self) -> bool {
        self.dry_run
    }
}

impl Given {
    fn of_query(request: &Request<'_>) -> Result<Self, Status> {
        let query = &request.query;
        Ok(Self {
            policy: query.raw("propagationPolicy").map(str::to_owned),
            orphans: query.optional_flag("orphanDependents"),
            dry_run: query.all("dryRun").map(str::to_owned).collect(),
            grace: query.raw("gracePeriodSeconds").map(parse_int).transpose()?,
            ..Self::default()
        })
    }

    fn of_value(body: &Value) -> Self {
        let text = |path: &str| body.pointer(path).and_then(Value::as_str).map(str::to_owned);
        let dry_run = body.get("dryRun").and_then(Value::as_array).into_iter().flatten();
        Self {
            policy: text("/propagationPolicy"),
            orphans: body.get("orphanDependents").and_then(Value::as_bool),
            dry_run: dry_run.map(|one| one.as_str().unwrap_or_default().to_owned()).collect(),
            grace: body.get("gracePeriodSeconds").and_then(Value::as_i64),
            uid: text("/preconditions/uid"),
            version: text("/preconditions/resourceVersion"),
        }
    }

    fn settle(self) -> Result<Options, Status> {
        let mut errors = Vec::new();
        let field = FieldPath::new("propagationPolicy");
        let policy = self.policy.as_deref();
        if let (Some(policy), Some(_)) = (policy, self.orphans) {
            let why = "orphanDependents and deletionPropagation cannot be both set";
            errors.push(FieldError::invalid(&field, policy, why));
        }
        let named = match policy {
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
        let old_way = |orphans| if orphans { Propagation::Orphan } else { Propagation::Background };
        Ok(Options {
            propagation: named.or(self.orphans.map(old_way)),
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
    fn all_that_is_wrong_is_named_at_once() {
        let wrong = json!({"orphanDependents": true, "propagationPolicy": "X", "dryRun": ["Y"]});
        let status = Options::from_value(&wrong).unwrap_err();
        assert_eq!(status.details.causes.len(), 3);
        assert_eq!(status.details.kind, "DeleteOptions");
    }

    #[test]
    fn the_old_way_of_cascading_means_the_new_one() {
        for (orphans, propagation) in
            [(true, Propagation::Orphan), (false, Propagation::Background)]
        {
            let options = Options::from_value(&json!({"orphanDependents": orphans})).unwrap();
            assert_eq!(options.propagation, Some(propagation));
            assert_eq!(options.cascades, !orphans);
        }
    }
}
