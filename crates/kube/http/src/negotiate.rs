//! Which form of the answer a client accepts.
//!
//! Two refusals exist, as on the original: its router refuses a media type that a route does not
//! write (`406: Not Acceptable`), and what passed may still ask for a form that the endpoint does
//! not have (`only the following media types are accepted`).
//!
//! Everything is made in JSON, which nearly every client accepts, and which is cheapest here. Who
//! accepts nothing but protobuf gets that, of kinds that have messages.

use crate::response::Encoding;
use mainstay_object::{Reason, Status};

/// What the original writes, in the order told to clients.
const WRITABLE: &str = "application/json, application/yaml, application/vnd.kubernetes.protobuf";
/// What its routes of collections write besides.
const STREAMS: &str =
    "application/json;stream=watch, application/vnd.kubernetes.protobuf;stream=watch";

/// The form of an answer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Form {
    /// The object or list itself.
    #[default]
    Plain,
    /// A `Table`, of a version of `meta.k8s.io`.
    Table(&'static str),
    /// `PartialObjectMetadata` or its list, of a version of `meta.k8s.io`.
    Metadata(&'static str),
    /// Aggregated discovery, of a version of `apidiscovery.k8s.io`.
    Discovery(&'static str),
}

/// Which special forms an endpoint has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EndpointForms {
    /// Tables and metadata.
    Objects,
    /// The same, of kinds that have messages: protobuf too.
    Messages,
    /// Metadata and protobuf: what is answered and not kept has no table.
    Metadata,
    /// Aggregated discovery.
    Discovery,
    /// No special form at all.
    Nothing,
}

/// How the original routes an endpoint, which decides on the words of a refusal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Route {
    /// By its table of routes, which looks at media types first.
    Table,
    /// The same, for a route that can also watch.
    Collection,
    /// The table's route of `/version`, which writes JSON alone.
    JsonOnly,
    /// Past that table: custom kinds and the documents of groups.
    Bare,
}

/// Chooses the first form of an `Accept` header that the endpoint has; no header means JSON.
///
/// Clauses are taken by falling quality, then in the order written, as clients list their wishes.
pub fn choose(accept: Option<&str>, offer: EndpointForms, route: Route) -> Result<Form, Status> {
    let accept = accept.unwrap_or_default().trim();
    if accept.is_empty() {
        return Ok(Form::Plain);
    }
    route.admit(accept)?;
    clauses(accept).iter().find_map(|clause| clause.form(offer)).ok_or_else(|| {
        Status::new(
            Reason::NotAcceptable,
            format!("only the following media types are accepted: {WRITABLE}"),
        )
    })
}

const PROTOBUF: &str = "application/vnd.kubernetes.protobuf";

/// How the client wants objects to be written.
pub fn encoding(accept: Option<&str>) -> Encoding {
    if wants_protobuf(accept) {
        Encoding::Protobuf
    } else if prefers_yaml(accept) {
        Encoding::Yaml
    } else {
        Encoding::Json
    }
}

/// Whether the client accepts protobuf and nothing else that is written.
fn wants_protobuf(accept: Option<&str>) -> bool {
    accept.is_some_and(|accept| {
        accept.contains(PROTOBUF) && {
            let clauses = clauses(accept);
            clauses.iter().any(Clause::is_protobuf) && !clauses.iter().any(Clause::is_writable)
        }
    })
}

/// Whether the client would rather have YAML than JSON.
fn prefers_yaml(accept: Option<&str>) -> bool {
    // Nearly nobody does, and this is asked for every request.
    accept.is_some_and(|accept| {
        accept.contains("yaml")
            && clauses(accept)
                .iter()
                .find(|clause| clause.is_writable())
                .is_some_and(|clause| clause.media == "application/yaml")
    })
}

/// The media types of an `Accept` header without their parameters, the most wanted first.
pub fn media(accept: &str) -> Vec<&str> {
    clauses(accept).into_iter().map(|clause| clause.media).collect()
}

fn clauses(accept: &str) -> Vec<Clause<'_>> {
    let mut clauses: Vec<Clause<'_>> = accept.split(',').filter_map(Clause::parse).collect();
    clauses.sort_by(|a, b| b.quality.total_cmp(&a.quality));
    clauses
}

impl Route {
    /// Refuses what the table of routes refuses: it compares media types without parameters and
    /// knows no wildcard but `*/*`.
    fn admit(self, accept: &str) -> Result<(), Status> {
        let written = match self {
            Self::Bare => return Ok(()),
            Self::JsonOnly => "application/json".to_owned(),
            Self::Table => WRITABLE.to_owned(),
            Self::Collection => format!("{WRITABLE}, {STREAMS}"),
        };
        let fits = accept
            .split(',')
            .map(|clause| clause.split(';').next().unwrap_or_default().trim())
            .any(|media| media == "*/*" || written.split(", ").any(|known| known == media));
        if fits || mainstay_fault::is_on("whatever-is-accepted-is-met") {
            return Ok(());
        }
        let message = format!("406: Not Acceptable\n\nAvailable representations: {written}");
        Err(Status::new(Reason::NotAcceptable, message).with_empty_details())
    }
}

#[derive(Debug)]
struct Clause<'a> {
    media: &'a str,
    quality: f32,
    kind: Option<&'a str>,
    group: &'a str,
    version: &'a str,
}

impl<'a> Clause<'a> {
    fn parse(text: &'a str) -> Option<Self> {
        let mut parts = text.split(';').map(str::trim);
        let media = parts.next().filter(|media| !media.is_empty())?;
        let mut clause = Self { media, quality: 1.0, kind: None, group: "", version: "" };
        for part in parts {
            let (key, value) = part.split_once('=').unwrap_or((part, ""));
            let value = value.trim().trim_matches('"');
            match key.trim() {
                "q" => clause.quality = value.parse().unwrap_or(0.0),
                "as" => clause.kind = Some(value),
                "g" => clause.group = value,
                "v" => clause.version = value,
                _ => {}
            }
        }
        (clause.quality > 0.0).then_some(clause)
    }

    /// Whether it asks for the object itself in protobuf.
    fn is_protobuf(&self) -> bool {
        self.media == PROTOBUF && self.kind.is_none()
    }

    fn is_writable(&self) -> bool {
        matches!(self.media, "application/json" | "application/yaml" | "application/*" | "*/*")
    }

    fn form(&self, offer: EndpointForms) -> Option<Form> {
        if !self.is_writable() {
            let offered = matches!(offer, EndpointForms::Messages | EndpointForms::Metadata);
            return (offered && self.is_protobuf()).then_some(Form::Plain);
        }
        let Some(kind) = self.kind else { return Some(Form::Plain) };
        let meta = || match self.version {
            "v1" => Some("v1"),
            "v1beta1" => Some("v1beta1"),
            _ => None,
        };
        match (offer, self.group, kind) {
            (EndpointForms::Objects | EndpointForms::Messages, "meta.k8s.io", "Table") => {
                meta().map(Form::Table)
            }
            (
                EndpointForms::Objects | EndpointForms::Messages | EndpointForms::Metadata,
                "meta.k8s.io",
                "PartialObjectMetadata" | "PartialObjectMetadataList",
            ) => meta().map(Form::Metadata),
            (EndpointForms::Discovery, "apidiscovery.k8s.io", "APIGroupDiscoveryList") => {
                (self.version == "v2").then_some(Form::Discovery("v2"))
            }
            _ => None,
        }
    }
}

/// Whether gzip is among the accepted encodings.
pub fn accepts_gzip(accept_encoding: Option<&str>) -> bool {
    accept_encoding.unwrap_or_default().split(',').any(|one| {
        let mut parts = one.split(';').map(str::trim);
        parts.next() == Some("gzip") && !parts.any(|part| matches!(part, "q=0" | "q=0.0"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_form_that_the_endpoint_has_wins() {
        let table = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json;as=Table;v=v1beta1;g=meta.k8s.io,application/json";
        let discovery =
            "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,application/json";
        for (accept, offer, form) in [
            ("", EndpointForms::Objects, Form::Plain),
            ("*/*", EndpointForms::Objects, Form::Plain),
            (table, EndpointForms::Objects, Form::Table("v1")),
            (table, EndpointForms::Discovery, Form::Plain),
            (discovery, EndpointForms::Discovery, Form::Discovery("v2")),
            (discovery, EndpointForms::Objects, Form::Plain),
            (
                "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1",
                EndpointForms::Objects,
                Form::Metadata("v1"),
            ),
            (
                "application/vnd.kubernetes.protobuf,application/json",
                EndpointForms::Objects,
                Form::Plain,
            ),
            ("application/json;q=0.5,*/*;q=0.1", EndpointForms::Objects, Form::Plain),
        ] {
            assert_eq!(choose(Some(accept), offer, Route::Table).unwrap(), form, "{accept}");
        }
    }

    #[test]
    fn a_form_that_nobody_has_is_refused() {
        for accept in [
            "application/vnd.kubernetes.protobuf",
            "application/xml",
            "application/json;q=0",
            "application/json;as=Table;v=v2;g=meta.k8s.io",
        ] {
            let status = choose(Some(accept), EndpointForms::Objects, Route::Table).unwrap_err();
            assert_eq!(status.code, 406, "{accept}");
        }
    }

    #[test]
    fn media_types_and_forms_are_refused_in_different_words() {
        let message = |accept, route| {
            choose(Some(accept), EndpointForms::Objects, route).unwrap_err().message
        };
        let known = "application/json, application/yaml, application/vnd.kubernetes.protobuf";
        let routed = format!("406: Not Acceptable\n\nAvailable representations: {known}");
        assert_eq!(message("text/plain", Route::Table), routed);
        assert_eq!(message("application/*", Route::Table), routed);
        let collection = message("text/plain", Route::Collection);
        assert!(collection.ends_with(", application/vnd.kubernetes.protobuf;stream=watch"));
        let form = format!("only the following media types are accepted: {known}");
        assert_eq!(message("text/plain", Route::Bare), form);
        assert_eq!(message("application/json;as=Pie;v=v1;g=meta.k8s.io", Route::Table), form);
    }

    #[test]
    fn yaml_is_written_for_who_names_it_first() {
        assert!(prefers_yaml(Some("application/yaml")));
        assert!(prefers_yaml(Some("text/html, application/yaml, */*")));
        assert!(!prefers_yaml(Some("application/json, application/yaml")));
        assert!(!prefers_yaml(Some("application/yaml;q=0.5, */*;q=0.8")));
        assert!(!prefers_yaml(None));
    }

    #[test]
    fn gzip_must_be_named() {
        assert!(accepts_gzip(Some("deflate, gzip;q=0.8")));
        assert!(!accepts_gzip(Some("identity")));
        assert!(!accepts_gzip(Some("gzip;q=0")));
        assert!(!accepts_gzip(None));
    }
}
