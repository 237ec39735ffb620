//! The ClusterServiceVersion of a bundle: the fields that `opm` reads, each read as `opm` reads it.

use crate::{error::BundleError, go_field, manifest::Manifest, types};
use mainstay_gocompat::values::json_kind;
use mainstay_schema::gojson::{self, DeclaredType, ValuePathStep};
use serde_json::{Map, Value};

/// An API by group, version, kind and plural. The order is that in which Go prints maps of them.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ApiKey {
    /// The group.
    pub group: String,
    /// The version.
    pub version: String,
    /// The kind.
    pub kind: String,
    /// The plural; for an aggregated API its name.
    pub plural: String,
}

impl std::fmt::Display for ApiKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}/{}/{} ({})", self.group, self.version, self.kind, self.plural)
    }
}

/// An entry of `spec.relatedImages`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RelatedImage {
    /// The name; empty for images that the list lacks.
    pub name: String,
    /// The reference.
    pub image: String,
}

/// Owned and required API definitions of the CSV: name, group, version, kind.
pub(crate) struct Definitions<'v> {
    pub(crate) owned: Vec<&'v Value>,
    pub(crate) required: Vec<&'v Value>,
}

/// A manifest that is a ClusterServiceVersion.
#[derive(Clone, Copy, Debug)]
pub struct CsvManifest<'b> {
    manifest: &'b Manifest,
}

const SPEC: &[&str] = &["spec"];

impl<'b> CsvManifest<'b> {
    pub(crate) fn new(manifest: &'b Manifest) -> Self {
        Self { manifest }
    }

    /// The manifest.
    pub fn manifest(self) -> &'b Manifest {
        self.manifest
    }

    /// The name; may be empty.
    pub fn name(self) -> &'b str {
        go_field::field(self.manifest.value(), "metadata")
            .map(|metadata| go_field::text(metadata, "name"))
            .unwrap_or_default()
    }

    /// An annotation.
    pub fn annotation(self, name: &str) -> Option<&'b str> {
        let metadata = go_field::field(self.manifest.value(), "metadata")?;
        let value = go_field::field(metadata, "annotations")?.get(name)?;
        // In a Go map a null entry is an empty text.
        Some(value.as_str().unwrap_or_default())
    }

    /// `spec`, if present.
    pub fn spec(self) -> Option<&'b Value> {
        self.manifest.value().get("spec")
    }

    /// Checks that type and metadata have their Go types.
    pub(crate) fn check_type_and_metadata(self) -> Result<(), BundleError> {
        let value = self.manifest.value();
        for shape in [&types::TYPE_META, &types::METADATA] {
            if let Err(mismatch) = gojson::check_struct(value, shape) {
                let json = self.manifest.json();
                let pretty = crate::pretty_unmarshal::format_mismatch(json, value, &mismatch);
                let place = self.manifest.type_error(&[], &mismatch);
                return Err(BundleError::new(pretty, place.problem().clone()));
            }
        }
        Ok(())
    }

    /// The fields of `spec`.
    fn fields(self) -> Result<Option<&'b Map<String, Value>>, BundleError> {
        match self.spec() {
            None => Err(self.manifest.error(
                "unexpected end of JSON input",
                &[],
                "give the ClusterServiceVersion a spec",
            )),
            Some(Value::Null) => Ok(None),
            Some(Value::Object(fields)) => Ok(Some(fields)),
            Some(other) => Err(self.manifest.error(
                format!(
                    "json: cannot unmarshal {} into Go value of type map[string]*json.RawMessage",
                    json_kind(other)
                ),
                &[ValuePathStep::Field("spec".to_owned())],
                "write spec as a mapping",
            )),
        }
    }

    fn field(self, name: &str) -> Result<Option<&'b Value>, BundleError> {
        let found = self.fields()?.and_then(|fields| fields.get(name));
        Ok(found.filter(|value| !value.is_null()))
    }

    fn field_of_type(
        self,
        name: &str,
        kind: &DeclaredType,
    ) -> Result<Option<&'b Value>, BundleError> {
        let Some(value) = self.field(name)? else { return Ok(None) };
        match gojson::check(value, kind) {
            Ok(()) => Ok(Some(value)),
            Err(mismatch) => Err(self.manifest.type_error(&["spec", name], &mismatch)),
        }
    }

    /// `spec.version` as written; empty if absent.
    pub(crate) fn version(self) -> Result<&'b str, BundleError> {
        let value = self.field_of_type("version", &DeclaredType::Text)?;
        Ok(value.and_then(Value::as_str).unwrap_or_default())
    }

    /// `spec.release`; a number becomes its text.
    pub(crate) fn release(self) -> Result<String, BundleError> {
        match self.field("release")? {
            None => Ok(String::new()),
            Some(Value::String(text)) => Ok(text.clone()),
            Some(Value::Number(number)) => Ok(mainstay_gocompat::values::number_as_text(number)),
            Some(_) => Err(self.manifest.error(
                "release field must be a string or number",
                &[
                    ValuePathStep::Field("spec".to_owned()),
                    ValuePathStep::Field("release".to_owned()),
                ],
                "write the release as a text",
            )),
        }
    }

    fn definitions(self, section: &str) -> Result<Definitions<'b>, BundleError> {
        let value = self.field_of_type(section, &DeclaredType::Struct(&types::DEFINITIONS))?;
        let list = |name: &str| match value.and_then(|value| go_field::field(value, name)) {
            Some(Value::Array(items)) => items.iter().filter(|item| !item.is_null()).collect(),
            _ => Vec::new(),
        };
        Ok(Definitions { owned: list("owned"), required: list("required") })
    }

    /// Owned and required custom resources.
    pub(crate) fn custom_resources(self) -> Result<Definitions<'b>, BundleError> {
        self.definitions("customresourcedefinitions")
    }

    /// Owned and required aggregated APIs.
    pub(crate) fn api_services(self) -> Result<Definitions<'b>, BundleError> {
        if let Err(error) = self.fields() {
            return Err(error.with_prefix("error unmarshaling into object map: "));
        }
        self.definitions("apiservicedefinitions")
    }

    /// The key of an owned or required custom resource; its name contains the group.
    pub(crate) fn custom_resource_key(self, definition: &Value) -> Result<ApiKey, BundleError> {
        let name = go_field::text(definition, "name");
        let Some((plural, group)) = name.split_once('.') else {
            let path = ["spec", "customresourcedefinitions"]
                .map(|name| ValuePathStep::Field(name.to_owned()));
            return Err(self.manifest.error(
                format!("couldn't parse plural.group from crd name: {name}"),
                &path,
                "name the CustomResourceDefinition as PLURAL.GROUP",
            ));
        };
        Ok(ApiKey {
            group: group.to_owned(),
            version: go_field::text(definition, "version").to_owned(),
            kind: go_field::text(definition, "kind").to_owned(),
            plural: plural.to_owned(),
        })
    }

    /// The images of `spec.relatedImages`, in their order.
    pub(crate) fn related_images(self) -> Result<Vec<RelatedImage>, BundleError> {
        let Some(Value::Array(items)) =
            self.field_of_type("relatedImages", &types::RELATED_IMAGES)?
        else {
            return Ok(Vec::new());
        };
        let text = |item: &Value, name: &str| go_field::text(item, name).to_owned();
        let image =
            |item: &Value| RelatedImage { name: text(item, "name"), image: text(item, "image") };
        Ok(items.iter().map(image).collect())
    }

    /// The images that the deployments run, sorted.
    pub(crate) fn operator_images(self) -> Result<Vec<&'b str>, BundleError> {
        let Some(spec) = self.spec() else { return Ok(Vec::new()) };
        if let Err(mismatch) = gojson::check_struct(spec, &types::OPERATOR_IMAGES) {
            return Err(self.manifest.type_error(SPEC, &mismatch));
        }
        let Some(install) = go_field::field(spec, "Install") else { return Ok(Vec::new()) };
        if go_field::text(install, "strategy") != "deployment" {
            return Ok(Vec::new());
        }
        let mut images = Vec::new();
        let deployments =
            go_field::field(install, "spec").and_then(|spec| go_field::field(spec, "Deployments"));
        for deployment in deployments.and_then(Value::as_array).into_iter().flatten() {
            let pod = ["Spec", "template", "spec"]
                .iter()
                .try_fold(deployment, |value, name| go_field::field(value, name));
            let Some(pod) = pod else { continue };
            for list in ["containers", "initContainers"] {
                let items = go_field::field(pod, list).and_then(Value::as_array);
                images
                    .extend(items.into_iter().flatten().map(|item| go_field::text(item, "image")));
            }
        }
        images.sort_unstable();
        images.dedup();
        Ok(images)
    }
}
