//! Which form of the answer a client accepts.

use mainstay_object::{Reason, Status};

/// What this server can write, in the order told to clients.
const WRITABLE: &str = "application/json";

/// The form of an answer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Form {
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
pub(crate) enum Offer {
    /// Tables and metadata only.
    Objects,
    /// Aggregated discovery.
    Discovery,
}

/// Chooses the first form of an `Accept` header that the endpoint has; no header means JSON.
///
/// Clauses are taken by falling quality, then in the order written, as clients list their wishes.
pub(crate) fn choose(accept: Option<&str>, offer: Offer) -> Result<Form, Status> {
    let accept = accept.unwrap_or_default().trim();
    if accept.is_empty() {
        return Ok(Form::Plain);
    }
    let mut clauses: Vec<Clause<'_>> = accept.split(',').filter_map(Clause::parse).collect();
    clauses.sort_by(|a, b| b.quality.total_cmp(&a.quality));
    clauses.iter().find_map(|clause| clause.form(offer)).ok_or_else(|| {
        Status::new(
            Reason::NotAcceptable,
            format!("only the following media types are accepted: {WRITABLE}"),
        )
    })
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

    fn form(&self, offer: Offer) -> Option<Form> {
        if !matches!(self.media, "application/json" | "application/*" | "*/*") {
            return None;
        }
        let Some(kind) = self.kind else { return Some(Form::Plain) };
        let meta = || match self.version {
            "v1" => Some("v1"),
            "v1beta1" => Some("v1beta1"),
            _ => None,
        };
        match (offer, self.group, kind) {
            (Offer::Objects, "meta.k8s.io", "Table") => meta().map(Form::Table),
            (
                Offer::Objects,
                "meta.k8s.io",
                "PartialObjectMetadata" | "PartialObjectMetadataList",
            ) => meta().map(Form::Metadata),
            (Offer::Discovery, "apidiscovery.k8s.io", "APIGroupDiscoveryList") => {
                match self.version {
                    "v2" => Some(Form::Discovery("v2")),
                    "v2beta1" => Some(Form::Discovery("v2beta1")),
                    _ => None,
                }
            }
            _ => None,
        }
    }
}

/// Whether gzip is among the accepted encodings.
pub(crate) fn accepts_gzip(accept_encoding: Option<&str>) -> bool {
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
            ("", Offer::Objects, Form::Plain),
            ("*/*", Offer::Objects, Form::Plain),
            (table, Offer::Objects, Form::Table("v1")),
            (table, Offer::Discovery, Form::Plain),
            (discovery, Offer::Discovery, Form::Discovery("v2")),
            (discovery, Offer::Objects, Form::Plain),
            (
                "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1",
                Offer::Objects,
                Form::Metadata("v1"),
            ),
            ("application/vnd.kubernetes.protobuf,application/json", Offer::Objects, Form::Plain),
            ("application/json;q=0.5,*/*;q=0.1", Offer::Objects, Form::Plain),
        ] {
            assert_eq!(choose(Some(accept), offer).unwrap(), form, "{accept}");
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
            let status = choose(Some(accept), Offer::Objects).unwrap_err();
            assert_eq!(status.code, 406, "{accept}");
        }
    }

    #[test]
    fn gzip_must_be_named() {
        assert!(accepts_gzip(Some("deflate, gzip;q=0.8")));
        assert!(!accepts_gzip(Some("identity")));
        assert!(!accepts_gzip(Some("gzip;q=0")));
        assert!(!accepts_gzip(None));
    }
}
