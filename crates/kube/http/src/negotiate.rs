//! Content negotiation: the representation and the encoding that an `Accept` header chooses.
//!
//! kube-apiserver has two errors for it. Its router rejects a media type that the route does not
//! write (`406: Not Acceptable`). After that, the endpoint rejects a representation that it does
//! not have (`only the following media types are accepted`).
//!
//! Responses are made in JSON. Clients that name protobuf first, as Go clients do, get protobuf for
//! kinds that have messages.

use crate::response::Encoding;
use mainstay_object::{Reason, Status};

/// The media types that kube-apiserver writes, in the order of its error texts.
const WRITABLE: &str = "application/json, application/yaml, application/vnd.kubernetes.protobuf";
/// The further media types of its collection routes.
const STREAMS: &str =
    "application/json;stream=watch, application/vnd.kubernetes.protobuf;stream=watch";

/// The representation of a response.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Representation {
    /// The object or list itself.
    #[default]
    Plain,
    /// A `Table` of a version of `meta.k8s.io`.
    Table(&'static str),
    /// `PartialObjectMetadata` or its list, of a version of `meta.k8s.io`.
    Metadata(&'static str),
    /// Aggregated discovery of a version of `apidiscovery.k8s.io`.
    Discovery(&'static str),
}

/// The representations that an endpoint has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EndpointRepresentations {
    /// `Table` and metadata.
    Objects,
    /// `Table` and metadata, of kinds that have messages: protobuf too.
    Messages,
    /// Metadata and protobuf. Objects that are not stored, such as reviews, have no table.
    Metadata,
    /// Aggregated discovery.
    Discovery,
    /// No representation but the object itself.
    None,
}

/// How kube-apiserver routes an endpoint, which decides the text of its errors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RouteKind {
    /// A route of its route table, which checks media types first.
    Table,
    /// A route of the table that can also watch.
    Collection,
    /// The route of `/version`, which writes JSON alone.
    JsonOnly,
    /// Not in the route table: custom kinds and the discovery documents of groups.
    Unrouted,
}

/// Chooses the first representation of an `Accept` header that the endpoint has; no header means
/// JSON.
///
/// Clauses count by falling quality, then in their written order.
pub fn choose(
    accept: Option<&str>,
    endpoint: EndpointRepresentations,
    route: RouteKind,
) -> Result<Representation, Status> {
    let accept = accept.unwrap_or_default().trim();
    if accept.is_empty() {
        return Ok(Representation::Plain);
    }
    route.check_media_types(accept)?;
    clauses(accept).iter().find_map(|clause| clause.representation(endpoint)).ok_or_else(|| {
        Status::new(
            Reason::NotAcceptable,
            format!("only the following media types are accepted: {WRITABLE}"),
        )
    })
}

const PROTOBUF: &str = "application/vnd.kubernetes.protobuf";

/// The encoding of objects that the client prefers, among those that exist.
pub fn encoding(accept: Option<&str>) -> Encoding {
    let accept = accept.unwrap_or_default();
    // This runs for every request, and most of them accept JSON.
    if !accept.contains(PROTOBUF) && !accept.contains("yaml") {
        return Encoding::Json;
    }
    clauses(accept).iter().find_map(Clause::encoding).unwrap_or_default()
}

/// The media types of an `Accept` header without parameters, the preferred one first.
pub fn media_types(accept: &str) -> Vec<&str> {
    clauses(accept).into_iter().map(|clause| clause.media).collect()
}

fn clauses(accept: &str) -> Vec<Clause<'_>> {
    let mut clauses: Vec<Clause<'_>> = accept.split(',').filter_map(Clause::parse).collect();
    clauses.sort_by(|a, b| b.quality.total_cmp(&a.quality));
    clauses
}

impl RouteKind {
    /// Rejects a media type as kube-apiserver's route table does. The table compares media types
    /// without parameters, and its only wildcard is `*/*`.
    fn check_media_types(self, accept: &str) -> Result<(), Status> {
        let written = match self {
            Self::Unrouted => return Ok(()),
            Self::JsonOnly => "application/json".to_owned(),
            Self::Table => WRITABLE.to_owned(),
            Self::Collection => format!("{WRITABLE}, {STREAMS}"),
        };
        let fits = accept
            .split(',')
            .map(|clause| clause.split(';').next().unwrap_or_default().trim())
            .any(|media| media == "*/*" || written.split(", ").any(|written| written == media));
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

    /// The encoding of a response that this clause accepts; none if no response has it.
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

    /// The version of `meta.k8s.io` in this clause.
    fn meta_version(&self) -> Option<&'static str> {
        match self.version {
            "v1" => Some("v1"),
            "v1beta1" => Some("v1beta1"),
            _ => None,
        }
    }

    /// The metadata representation that this clause requests, if any.
    fn metadata(&self) -> Option<Representation> {
        let kinds = ["PartialObjectMetadata", "PartialObjectMetadataList"];
        let is_metadata =
            self.group == "meta.k8s.io" && self.kind.is_some_and(|kind| kinds.contains(&kind));
        self.meta_version().filter(|_| is_metadata).map(Representation::Metadata)
    }

    fn representation(&self, endpoint: EndpointRepresentations) -> Option<Representation> {
        let has_metadata =
            !matches!(endpoint, EndpointRepresentations::Discovery | EndpointRepresentations::None);
        match (self.encoding()?, self.kind) {
            (Encoding::Protobuf, None) => {
                let has_messages = matches!(
                    endpoint,
                    EndpointRepresentations::Messages | EndpointRepresentations::Metadata
                );
                return has_messages.then_some(Representation::Plain);
            }
            (_, None) => return Some(Representation::Plain),
            _ => {}
        }
        if let Some(representation) = self.metadata() {
            return has_metadata.then_some(representation);
        }
        match (endpoint, self.group, self.kind?) {
            (
                EndpointRepresentations::Objects | EndpointRepresentations::Messages,
                "meta.k8s.io",
                "Table",
            ) => self.meta_version().map(Representation::Table),
            (
                EndpointRepresentations::Discovery,
                "apidiscovery.k8s.io",
                "APIGroupDiscoveryList",
            ) => (self.version == "v2").then_some(Representation::Discovery("v2")),
            _ => None,
        }
    }
}

/// Whether an `Accept-Encoding` header names gzip.
pub fn accepts_gzip(accept_encoding: Option<&str>) -> bool {
    accept_encoding.unwrap_or_default().split(',').any(|coding| {
        let mut parts = coding.split(';').map(str::trim);
        parts.next() == Some("gzip") && !parts.any(|part| matches!(part, "q=0" | "q=0.0"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn first_representation_that_the_endpoint_has_is_chosen() {
        let table = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json;as=Table;v=v1beta1;g=meta.k8s.io,application/json";
        let discovery =
            "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,application/json";
        for (accept, endpoint, representation) in [
            ("", EndpointRepresentations::Objects, Representation::Plain),
            ("*/*", EndpointRepresentations::Objects, Representation::Plain),
            (table, EndpointRepresentations::Objects, Representation::Table("v1")),
            (table, EndpointRepresentations::Discovery, Representation::Plain),
            (discovery, EndpointRepresentations::Discovery, Representation::Discovery("v2")),
            (discovery, EndpointRepresentations::Objects, Representation::Plain),
            (
                "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1",
                EndpointRepresentations::Objects,
                Representation::Metadata("v1"),
            ),
            (
                "application/vnd.kubernetes.protobuf,application/json",
                EndpointRepresentations::Objects,
                Representation::Plain,
            ),
            (
                "application/json;q=0.5,*/*;q=0.1",
                EndpointRepresentations::Objects,
                Representation::Plain,
            ),
        ] {
            assert_eq!(
                choose(Some(accept), endpoint, RouteKind::Table).unwrap(),
                representation,
                "{accept}"
            );
        }
    }

    #[test]
    fn unavailable_representation_is_not_acceptable() {
        for accept in [
            "application/vnd.kubernetes.protobuf",
            "application/xml",
            "application/json;q=0",
            "application/json;as=Table;v=v2;g=meta.k8s.io",
        ] {
            let status = choose(Some(accept), EndpointRepresentations::Objects, RouteKind::Table)
                .unwrap_err();
            assert_eq!(status.code, 406, "{accept}");
        }
    }

    #[test]
    fn route_table_and_endpoint_reject_with_different_messages() {
        let message = |accept, route| {
            choose(Some(accept), EndpointRepresentations::Objects, route).unwrap_err().message
        };
        let writable = "application/json, application/yaml, application/vnd.kubernetes.protobuf";
        let routed = format!("406: Not Acceptable\n\nAvailable representations: {writable}");
        assert_eq!(message("text/plain", RouteKind::Table), routed);
        assert_eq!(message("application/*", RouteKind::Table), routed);
        let collection = message("text/plain", RouteKind::Collection);
        assert!(collection.ends_with(", application/vnd.kubernetes.protobuf;stream=watch"));
        let unavailable = format!("only the following media types are accepted: {writable}");
        assert_eq!(message("text/plain", RouteKind::Unrouted), unavailable);
        assert_eq!(
            message("application/json;as=Pie;v=v1;g=meta.k8s.io", RouteKind::Table),
            unavailable
        );
    }

    #[test]
    fn encoding_is_the_first_that_the_client_names() {
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
        let representation =
            choose(Some(metadata), EndpointRepresentations::Objects, RouteKind::Unrouted).unwrap();
        assert_eq!(representation, Representation::Metadata("v1"));
        assert_eq!(
            choose(Some(table), EndpointRepresentations::Messages, RouteKind::Unrouted).unwrap(),
            Representation::Plain
        );
    }

    #[test]
    fn gzip_is_accepted_only_by_name() {
        assert!(accepts_gzip(Some("deflate, gzip;q=0.8")));
        assert!(!accepts_gzip(Some("identity")));
        assert!(!accepts_gzip(Some("gzip;q=0")));
        assert!(!accepts_gzip(None));
    }
}
