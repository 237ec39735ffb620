//! The bundle format check of `opm`: folders, annotations and dependencies.

use super::text_coercion;
use crate::cel_rule::CelRule;
use crate::{
    go_field,
    metadata::{self, BundleProperty},
    read::Limits,
    reader::BundleReader,
    tree::{self, FileTree},
    types,
};
use mainstay_gocompat::quote;
use mainstay_schema::gojson::{self, DeclaredStruct, DeclaredType};
use mainstay_version::Range;
use serde_json::Value;

const MEDIA_TYPE: &str = "operators.operatorframework.io.bundle.mediatype.v1";
const MANIFESTS: &str = "operators.operatorframework.io.bundle.manifests.v1";
const METADATA: &str = "operators.operatorframework.io.bundle.metadata.v1";

static ANNOTATED: DeclaredType = DeclaredType::Struct(&DeclaredStruct {
    name: "AnnotationMetadata",
    spelled: "bundle.AnnotationMetadata",
    fields: &[("annotations", DeclaredType::TextMap)],
});
static API: DeclaredType = DeclaredType::Struct(&DeclaredStruct {
    name: "GVKDependency",
    spelled: "registry.GVKDependency",
    fields: &[
        ("group", DeclaredType::Text),
        ("kind", DeclaredType::Text),
        ("version", DeclaredType::Text),
    ],
});
static PACKAGE: DeclaredType = DeclaredType::Struct(&DeclaredStruct {
    name: "PackageDependency",
    spelled: "registry.PackageDependency",
    fields: &[("packageName", DeclaredType::Text), ("version", DeclaredType::Text)],
});
static LABEL: DeclaredType = DeclaredType::Struct(&DeclaredStruct {
    name: "LabelDependency",
    spelled: "registry.LabelDependency",
    fields: &[("label", DeclaredType::Text)],
});
static CONSTRAINT: DeclaredType = DeclaredType::Struct(&DeclaredStruct {
    name: "CelConstraint",
    spelled: "registry.CelConstraint",
    fields: &[
        ("failureMessage", DeclaredType::Text),
        (
            "cel",
            DeclaredType::Struct(&DeclaredStruct {
                name: "Cel",
                spelled: "constraints.Cel",
                fields: &[("rule", DeclaredType::Text)],
            }),
        ),
    ],
});

/// The errors of `opm` for the format of a bundle, sorted. `display_root` is the name of the
/// bundle's folder in messages.
pub fn check_format(tree: &dyn FileTree, display_root: &str, limits: &Limits) -> Vec<String> {
    BundleReader::new(tree, limits).check_format(display_root)
}

impl BundleReader<'_> {
    /// The errors of `opm` for the format of a bundle, as [`check_format`] returns them.
    pub fn check_format(&self, display_root: &str) -> Vec<String> {
        let entries = self.list("").unwrap_or_default();
        let has = |name: &str| {
            entries.iter().any(|entry| entry.name == name && entry.kind == tree::FileKind::Folder)
        };
        let mut found: Vec<String> = ["manifests", "metadata"]
            .into_iter()
            .filter(|name| !has(name))
            .map(|name| format!("Unable to locate {name} directory"))
            .collect();
        if !found.is_empty() {
            return found;
        }
        let media = self.media_type("manifests", &format!("{display_root}/manifests"));
        let media = media.unwrap_or_else(|error| {
            found.push(error.to_string());
            ""
        });
        let (annotations, dependencies) = self.metadata();
        match annotations {
            None => found.push("Could not find annotations file".to_owned()),
            Some(annotations) => check_annotations(&annotations, media, &mut found),
        }
        for dependency in &dependencies {
            found.extend(dependency_errors(dependency));
        }
        found.sort();
        found
    }

    /// The annotations of one file, and the dependencies of another one.
    fn metadata(&self) -> (Option<Value>, Vec<BundleProperty>) {
        let entries = self.list("metadata").unwrap_or_default();
        let (mut annotations, mut dependencies) = (None, Vec::new());
        for entry in entries.into_iter().take(self.limits().files) {
            let path = format!("metadata/{}", entry.name);
            if entry.kind != tree::FileKind::File {
                continue;
            }
            let Ok(content) = self.file(&path) else { continue };
            let Ok(decoded) = content.document() else { continue };
            if annotations.is_none() {
                let read = text_coercion::read(&decoded.value, &ANNOTATED).ok();
                let found = read.and_then(|value| go_field::field(&value, "annotations").cloned());
                if found.is_some() {
                    annotations = found;
                    continue;
                }
            }
            if dependencies.is_empty() {
                let options = mainstay_yaml::Options {
                    empty: mainstay_yaml::EmptyDocuments::Keep,
                    ..mainstay_yaml::Options::default()
                };
                let mut documents = mainstay_yaml::documents(&content.bytes, &options);
                if let Some(Ok(document)) = documents.next() {
                    dependencies = metadata::dependencies(&document, &content.bytes, &path);
                }
            }
        }
        (annotations, dependencies)
    }
}

fn check_annotations(annotations: &Value, media: &str, found: &mut Vec<String>) {
    let get =
        |key: &str| annotations.get(key).map(|annotation| annotation.as_str().unwrap_or_default());
    let required = [MEDIA_TYPE, MANIFESTS, METADATA, types::PACKAGE_KEY, types::CHANNELS_KEY];
    for key in required.into_iter().filter(|key| get(key).is_none()) {
        found.push(format!("Missing annotation {}", quote(key)));
    }
    let media_annotation = get(MEDIA_TYPE).unwrap_or_default();
    if media_annotation != media {
        found.push(format!(
            "Expecting annotation {} to have value {} instead of {}",
            quote(MEDIA_TYPE),
            quote(media),
            quote(media_annotation)
        ));
    }
    let channels = get(types::CHANNELS_KEY).unwrap_or_default();
    let default = get(types::DEFAULT_KEY).unwrap_or("none");
    for (key, text) in [(types::CHANNELS_KEY, channels), (types::DEFAULT_KEY, default)] {
        if text.is_empty() {
            found.push(format!("Expecting annotation {} to have non-empty value", quote(key)));
        }
    }
}

fn dependency_errors(dependency: &BundleProperty) -> Vec<String> {
    let kind = match dependency.kind.as_str() {
        "olm.gvk" => Some(&API),
        "olm.package" => Some(&PACKAGE),
        "olm.label" => Some(&LABEL),
        "olm.constraint" => Some(&CONSTRAINT),
        _ => None,
    };
    let value = dependency.value.as_deref().and_then(|text| serde_json::from_str(text).ok());
    let is_valid = |value: &Value| kind.is_some_and(|kind| gojson::check(value, kind).is_ok());
    let Some(value) = value.filter(is_valid) else {
        return vec![format!("couldn't parse dependency of type {}", dependency.kind)];
    };
    let text = |field: &str| go_field::text(&value, field);
    let checks: &[(bool, &str)] = match dependency.kind.as_str() {
        "olm.gvk" => &[
            (text("group").is_empty(), "API Group is empty"),
            (text("version").is_empty(), "API Version is empty"),
            (text("kind").is_empty(), "API Kind is empty"),
        ],
        "olm.package" => {
            let version = text("version");
            &[
                (text("packageName").is_empty(), "Package name is empty"),
                (version.is_empty(), "Package version is empty"),
                (
                    !version.is_empty() && Range::parse(version).is_err(),
                    "Invalid semver format version",
                ),
            ]
        }
        "olm.label" => &[(text("label").is_empty(), "Label information is missing")],
        _ => match go_field::field(&value, "cel") {
            None => &[(true, "The CEL field is missing")],
            Some(cel) => match go_field::text(cel, "rule") {
                "" => &[(true, "The CEL expression is missing")],
                rule => {
                    let why = CelRule::parse(rule).err();
                    return why
                        .map(|why| format!("Invalid CEL expression: {why}"))
                        .into_iter()
                        .collect();
                }
            },
        },
    };
    checks.iter().filter(|(fails, _)| *fails).map(|(_, message)| (*message).to_owned()).collect()
}
