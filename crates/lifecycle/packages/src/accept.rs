//! In which form a client wants its answer.

use mainstay_object::{Reason, Status};

/// The form of an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    /// Objects.
    Whole,
    /// A table, of a version of `meta.k8s.io`.
    Table(&'static str),
    /// Metadata alone, of a version of `meta.k8s.io`.
    Metadata(&'static str),
}

/// The first form of an `Accept` header that there is: by quality, then in the order written.
pub(crate) fn choose(accept: Option<&str>) -> Result<Form, Status> {
    let accept = accept.map(str::trim).filter(|text| !text.is_empty()).unwrap_or("*/*");
    let mut clauses: Vec<(f32, Form)> = accept.split(',').filter_map(clause).collect();
    clauses.sort_by(|(a, _), (b, _)| b.total_cmp(a));
    clauses.first().map(|(_, form)| *form).ok_or_else(|| {
        let only = "only the following media types are accepted: application/json";
        Status::new(Reason::NotAcceptable, only)
    })
}

fn clause(text: &str) -> Option<(f32, Form)> {
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
    let form = match (kind, group) {
        ("", _) => Form::Whole,
        ("Table", "meta.k8s.io") => Form::Table(version?),
        ("PartialObjectMetadata" | "PartialObjectMetadataList", "meta.k8s.io") => {
            Form::Metadata(version?)
        }
        _ => return None,
    };
    (quality > 0.0).then_some((quality, form))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_form_that_there_is_wins() {
        let kubectl = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json;as=Table;v=v1beta1;g=meta.k8s.io,application/json";
        for (accept, form) in [
            (None, Form::Whole),
            (Some(""), Form::Whole),
            (Some("*/*"), Form::Whole),
            (Some(kubectl), Form::Table("v1")),
            (
                Some(
                    "application/json;q=0.5, application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1",
                ),
                Form::Metadata("v1"),
            ),
            (Some("application/vnd.kubernetes.protobuf, application/json"), Form::Whole),
            (Some("application/json;as=Table;v=v2;g=meta.k8s.io, */*"), Form::Whole),
        ] {
            assert_eq!(choose(accept).unwrap(), form, "{accept:?}");
        }
        for accept in ["application/vnd.kubernetes.protobuf", "text/html", "application/json;q=0"] {
            assert_eq!(choose(Some(accept)).unwrap_err().code, 406, "{accept}");
        }
    }
}
