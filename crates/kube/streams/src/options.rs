//! Options of pod subresources, and the container that they name.

use crate::StreamRequest;
use jiff::Timestamp;
use mainstay_http::query::{Query, parse_int};
use mainstay_object::{FieldError, FieldPath, Object, Status};
use serde_json::Value;

/// `PodLogOptions`.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct LogOptions {
    pub(super) container: String,
    pub(super) follow: bool,
    pub(super) previous: bool,
    pub(super) timestamps: bool,
    pub(super) since_seconds: Option<i64>,
    pub(super) since: Option<Timestamp>,
    pub(super) tail: Option<usize>,
    /// Bytes.
    pub(super) limit: Option<usize>,
}

impl LogOptions {
    /// Reads and validates the options (Kubernetes' `ValidatePodLogOptions`).
    pub(super) fn read(query: &Query, pod: &str) -> Result<Self, Status> {
        let number = |name: &str| query.raw(name).map(parse_int).transpose();
        let since_seconds = number("sinceSeconds")?;
        let since = match query.raw("sinceTime") {
            None => None,
            Some("" | "null") => Some(Timestamp::MIN),
            Some(text) => {
                let time = mainstay_schema::strict::parse_rfc3339(text);
                Some(time.map_err(|error| Status::bad_request(error.to_string()))?)
            }
        };
        let (tail, limit) = (number("tailLines")?, number("limitBytes")?);
        let mut errors = Vec::new();
        let mut invalid = |field: &str, value: i64, detail: &str| {
            errors.push(FieldError::invalid(&FieldPath::new(field), value, detail));
        };
        if let Some(tail) = tail.filter(|tail| *tail < 0) {
            invalid("tailLines", tail, "must be greater than or equal to 0");
        }
        if let Some(limit) = limit.filter(|limit| *limit < 1) {
            invalid("limitBytes", limit, "must be greater than 0");
        }
        if since_seconds.is_some() && since.is_some() {
            // Go prints a field path without a name like this.
            let detail = "at most one of `sinceTime` or `sinceSeconds` may be specified";
            errors.push(FieldError::forbidden(&FieldPath::new("[]"), detail));
        } else if let Some(seconds) = since_seconds.filter(|seconds| *seconds < 1) {
            invalid("sinceSeconds", seconds, "must be greater than 0");
        }
        // Kubernetes 1.35 rejects it unless a feature gate is set.
        if query.raw("stream").is_some() {
            errors.push(FieldError::forbidden(&FieldPath::new("stream"), "may not be specified"));
        }
        if !errors.is_empty() && !mainstay_fault::is_on("options-of-logs-are-not-judged") {
            return Err(Status::invalid("", "PodLogOptions", pod, &errors));
        }
        // The values are not negative here. A value beyond `usize` is no limit.
        let size = |value: i64| usize::try_from(value).unwrap_or(usize::MAX);
        Ok(Self {
            container: query.raw("container").unwrap_or_default().to_owned(),
            follow: query.flag("follow"),
            previous: query.flag("previous"),
            timestamps: query.flag("timestamps"),
            since_seconds,
            since,
            tail: tail.map(size),
            limit: limit.map(size),
        })
    }
}

/// The pod in the path.
pub(super) fn find_pod(request: &StreamRequest<'_>) -> Result<Object, Status> {
    let found = request.store.get(&request.key());
    found.map(|stored| stored.object()).ok_or_else(|| request.not_found())
}

/// The requested container, or the only one of the pod.
pub(super) fn find_container<'a>(pod: &'a Object, requested: &'a str) -> Result<&'a str, Status> {
    let name = pod.name();
    let names = |field: &str| {
        pod.array(&["spec", field])
            .iter()
            .filter_map(|container| container.get("name").and_then(Value::as_str))
    };
    let mut all =
        names("initContainers").chain(names("containers")).chain(names("ephemeralContainers"));
    if !requested.is_empty() {
        return if all.any(|name| name == requested) {
            Ok(requested)
        } else {
            let text = format!("container {requested} is not valid for pod {name}");
            Err(Status::bad_request(text))
        };
    }
    let mut containers = names("containers");
    match (containers.next(), containers.next()) {
        (Some(only), None) => Ok(only),
        (Some(first), _) if mainstay_fault::is_on("the-first-container-is-meant") => Ok(first),
        (None, _) => {
            let text = format!("a container name must be specified for pod {name}");
            Err(Status::bad_request(text))
        }
        _ => {
            let all: Vec<&str> = all.collect();
            Err(Status::bad_request(format!(
                "a container name must be specified for pod {name}, choose one of: [{}]",
                all.join(" ")
            )))
        }
    }
}

/// Whether the pod is assigned to a node.
pub(super) fn has_node(pod: &Object) -> bool {
    !pod.str(&["spec", "nodeName"]).unwrap_or_default().is_empty()
}

/// The error of a pod without a node.
pub(super) fn no_host_error(pod: &Object) -> Status {
    Status::bad_request(format!("pod {} does not have a host assigned", pod.name()))
}

/// The status of a container in the pod's status.
pub(super) fn container_status<'a>(pod: &'a Object, container: &str) -> Option<&'a Value> {
    let mut fields =
        ["containerStatuses", "initContainerStatuses", "ephemeralContainerStatuses"].iter();
    fields.find_map(|field| {
        let statuses = pod.array(&["status", field]);
        statuses.iter().find(|status| status.get("name").and_then(Value::as_str) == Some(container))
    })
}
