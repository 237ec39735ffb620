//! Content negotiation: the format that a client accepts.

use mainstay_object::{Reason, Status};

/// The format of a response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Format {
    /// Complete objects.
    Object,
    /// A `Table` in a version of `meta.k8s.io`.
    Table(&'static str),
    /// `PartialObjectMetadata` in a version of `meta.k8s.io`.
    Metadata(&'static str),
}

/// The first supported format of an `Accept` header: by quality, then in the order of the header.
pub(crate) fn choose(accept: Option<&str>) -> Result<Format, Status> {
    let accept = accept.map(str::trim).filter(|text| !text.is_empty()).unwrap_or("*/*");
    let mut clauses: Vec<(f32, Format)> = accept.split(',').filter_map(clause).collect();
    clauses.sort_by(|(a, _), (b, _)| b.total_cmp(a));
    clauses.first().map(|(_, format)| *format).ok_or_else(|| {
        let only = "only the following media types are accepted: application/json";
        Status::new(Reason::NotAcceptable, only)
    })
}

fn clause(text: &str) -> Option<(f32, Format)> {
    let mut parts = text.split(';').map(str::trim);
    if !matches!(parts.next()?, "application/json" | "application/*" | "*/*") {
        return None;
    }
    let (mut quality, mut kind, mut group, mut version) = (1.0, "", "", "");
    for (key, value) in parts.filter_map(|part| part.split_once('=')) {
        match key.trim() {
            "q" => quality = value.trim().parse().unwrap_or(0.0),
            "as" => kind = value.trim(),
            "g" => group = value.trim(),
            "v" => version = value.trim(),
            _ => {}
        }
    }
    let version = match version {
        "v1" => Some("v1"),
        "v1beta1" => Some("v1beta1"),
        _ => None,
    };
    let format = match (kind, group) {
        ("", _) => Format::Object,
        ("Table", "meta.k8s.io") => Format::Table(version?),
        ("PartialObjectMetadata" | "PartialObjectMetadataList", "meta.k8s.io") => {
            Format::Metadata(version?)
        }
        _ => return None,
    };
    (quality > 0.0).then_some((quality, format))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn first_supported_format_of_an_accept_header_wins() {
        let kubectl = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json;as=Table;v=v1beta1;g=meta.k8s.io,application/json";
        for (accept, format) in [
            (None, Format::Object),
            (Some(""), Format::Object),
            (Some("*/*"), Format::Object),
            (Some(kubectl), Format::Table("v1")),
            (
                Some(
                    "application/json;q=0.5, application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1",
                ),
                Format::Metadata("v1"),
            ),
            (Some("application/vnd.kubernetes.protobuf, application/json"), Format::Object),
            (Some("application/json;as=Table;v=v2;g=meta.k8s.io, */*"), Format::Object),
        ] {
            assert_eq!(choose(accept).unwrap(), format, "{accept:?}");
        }
        for accept in ["application/vnd.kubernetes.protobuf", "text/html", "application/json;q=0"] {
            assert_eq!(choose(Some(accept)).unwrap_err().code, 406, "{accept}");
        }
    }
}
