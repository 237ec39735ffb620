//! Which form of the answer a client accepts.
//!
//! Two refusals exist, as on the original: its router refuses a media type that a route does not
//! write (`406: Not Acceptable`), and what passed may still ask for a form that the endpoint does
//! not have (`only the following media types are accepted`).
//!
//! Everything is made in JSON. Clients that name protobuf before it, as those written in Go do, get
//! that of kinds that have messages.

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

/// How the client wants objects to be written, where the endpoint can.
pub fn encoding(accept: Option<&str>) -> Encoding {
    let accept = accept.unwrap_or_default();
    // Most accept JSON, and this is asked for every request.
    if !accept.contains(PROTOBUF) && !accept.contains("yaml") {
        return Encoding::Json;
    }
    clauses(accept).iter().find_map(Clause::encoding).unwrap_or_default()
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

    /// How an answer is written that it accepts; none if nothing is written so.
    fn encoding(&self) -> Option<Encoding> {
        match self.media {
            "application/json" | "application/*" | "*/*" => Some(Encoding::Json),
            "application/yaml" => Some(Encoding::Yaml),
            PROTOBUF if self.kind.is_none() || self.metadata().is_some() => {
                Some(Encoding::Protobuf)
            }
            _ => None,
        }
    }

    /// The version of `meta.k8s.io` that it names.
    fn meta_version(&self) -> Option<&'static str> {
        match self.version {
            "v1" => Some("v1"),
            "v1beta1" => Some("v1beta1"),
            _ => None,
        }
    }

    /// The form that it asks for, if that is metadata.
    fn metadata(&self) -> Option<Form> {
        let kinds = ["PartialObjectMetadata", "PartialObjectMetadataList"];
        let asks =
            self.group == "meta.k8s.io" && self.kind.is_some_and(|kind| kinds.contains(&kind));
        self.meta_version().filter(|_| asks).map(Form::Metadata)
    }

    fn form(&self, offer: EndpointForms) -> Option<Form> {
        let has_metadata = !matches!(offer, EndpointForms::Discovery | EndpointForms::Nothing);
        match (self.encoding()?, self.kind) {
            (Encoding::Protobuf, None) => {
                let has_messages =
                    matches!(offer, EndpointForms::Messages | EndpointForms::Metadata);
                return has_messages.then_some(Form::Plain);
            }
            (_, None) => return Some(Form::Plain),
            _ => {}
        }
        if let Some(form) = self.metadata() {
            return has_metadata.then_some(form);
        }
        match (offer, self.group, self.kind?) {
            (EndpointForms::Objects | EndpointForms::Messages, "meta.k8s.io", "Table") => {
                self.meta_version().map(Form::Table)
            }
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
    fn objects_are_written_as_the_client_names_first() {
        let metadata =
            "application/vnd.kubernetes.protobuf;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1";
        let table =
            "application/vnd.kubernetes.protobuf;as=Table;g=meta.k8s.io;v=v1,application/json";
        for (accept, expected) in [
            ("application/yaml", Encoding::Yaml),
            ("text/html, application/yaml, */*", Encoding::Yaml),
            ("application/json, application/yaml", Encoding::Json),
            ("application/yaml;q=0.5, */*;q=0.8", Encoding::Json),
            ("application/vnd.kubernetes.protobuf,application/json", Encoding::Protobuf),
            ("application/json,application/vnd.kubernetes.protobuf", Encoding::Json),
            ("application/vnd.kubernetes.protobuf", Encoding::Protobuf),
            (metadata, Encoding::Protobuf),
            (table, Encoding::Json),
            ("", Encoding::Json),
        ] {
            assert_eq!(encoding(Some(accept)), expected, "{accept}");
        }
        assert_eq!(encoding(None), Encoding::Json);
        let form = choose(Some(metadata), EndpointForms::Objects, Route::Bare).unwrap();
        assert_eq!(form, Form::Metadata("v1"));
        assert_eq!(choose(Some(table), EndpointForms::Messages, Route::Bare).unwrap(), Form::Plain);
    }

    #[test]
    fn gzip_must_be_named() {
        assert!(accepts_gzip(Some("deflate, gzip;q=0.8")));
        assert!(!accepts_gzip(Some("identity")));
        assert!(!accepts_gzip(Some("gzip;q=0")));
        assert!(!accepts_gzip(None));
    }
}
