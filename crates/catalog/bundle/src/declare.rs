//! The `olm.bundle` blob of a [`Bundle`] in a file-based catalog.

use crate::{
    bundle::{self, Bundle, GVK, GVK_SHAPE, PACKAGE, PACKAGE_SHAPE},
    csv::{CsvManifest, RelatedImage},
    error::{BundleError, BundleProblem},
    go_field,
    image_template::ImageTemplate,
    metadata::BundleProperty,
};
use base64::Engine as _;
use mainstay_gocompat::json::quoted;
use mainstay_gocompat::sort_slice;
use mainstay_schema::gojson::{self, DeclaredStruct};
use serde_json::Value;
use std::collections::BTreeSet;

/// The source of the bundle's image reference.
#[derive(Clone, Copy, Debug)]
pub enum BundleImage<'i> {
    /// No image, as for a folder.
    None,
    /// A given reference, as for an image that was pulled.
    Reference(&'i str),
    /// A template, filled with package, name and version.
    Template(&'i ImageTemplate),
}

/// An `olm.bundle` blob.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeclaredBundle {
    /// The bundle's name; may be empty.
    pub name: String,
    /// The package; if empty, no catalog can hold the bundle.
    pub package: String,
    /// The image reference; may be empty.
    pub image: String,
    /// The properties in upstream's order.
    pub properties: Vec<DeclaredProperty>,
    /// The related images, sorted by reference.
    pub related_images: Vec<RelatedImage>,
}

/// A property of a blob.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeclaredProperty {
    /// The type.
    pub kind: String,
    /// The value, a JSON text.
    pub value: String,
}

pub(crate) const OBJECT: &str = "olm.bundle.object";
pub(crate) const METADATA: &str = "olm.csv.metadata";

impl Bundle {
    /// The `olm.bundle` blob of this bundle. `folder_name` is the caller's name of the folder; one
    /// message repeats it.
    ///
    /// # Errors
    /// If upstream refuses the bundle.
    pub fn declare(
        &self,
        image: BundleImage<'_>,
        folder_name: &str,
    ) -> Result<DeclaredBundle, BundleError> {
        let image = self.image(image).map_err(|error| {
            let folder = mainstay_gocompat::quote(folder_name);
            error.with_prefix(&format!(
                "failed templating image reference from bundle for {folder}: "
            ))
        })?;
        let quoted_name = mainstay_gocompat::quote(self.name());
        let properties = self.declared_properties().map_err(|error| {
            error.with_prefix(&format!("get properties for bundle {quoted_name}: "))
        })?;
        let related_images = self.declared_images(&image).map_err(|error| {
            error.with_prefix(&format!("get related images for bundle {quoted_name}: "))
        })?;
        Ok(DeclaredBundle {
            name: self.name().to_owned(),
            package: self.package().to_owned(),
            image,
            properties,
            related_images,
        })
    }

    fn image(&self, image: BundleImage<'_>) -> Result<String, BundleError> {
        let template = match image {
            BundleImage::None => return Ok(String::new()),
            BundleImage::Reference(reference) => return Ok(reference.to_owned()),
            BundleImage::Template(template) => template,
        };
        let mut version = String::new();
        if let Some(property) = self.properties.iter().find(|property| property.kind == PACKAGE) {
            let value = parse_property(property, &PACKAGE_SHAPE)?;
            version.push_str(go_field::text(&value, "version"));
        }
        template.fill(self.package(), self.name(), &version).map_err(|error| {
            let message = error.to_string();
            let problem = BundleProblem {
                file: String::new(),
                line: None,
                message: message.clone(),
                remedy: "use {{.Package}}, {{.Name}} and {{.Version}} only".into(),
            };
            BundleError::new(message, problem)
        })
    }

    fn declared_properties(&self) -> Result<Vec<DeclaredProperty>, BundleError> {
        let mut provided = BTreeSet::new();
        let mut required = BTreeSet::new();
        let mut package = None;
        let mut declared = Vec::new();
        let copied = |property: &BundleProperty| DeclaredProperty {
            kind: property.kind.clone(),
            value: property.json().to_owned(),
        };
        for (at, property) in self.properties.iter().enumerate() {
            match property.kind.as_str() {
                GVK => {
                    provided.insert(gvk(&parse_listed_property(at, property, &GVK_SHAPE)?));
                }
                PACKAGE => {
                    let value = parse_listed_property(at, property, &PACKAGE_SHAPE)?;
                    package = Some(package_value(
                        go_field::text(&value, "packageName"),
                        go_field::text(&value, "version"),
                        go_field::text(&value, "release"),
                    ));
                }
                _ => declared.push(copied(property)),
            }
        }
        for (at, property) in self.dependencies.iter().enumerate() {
            match property.kind.as_str() {
                GVK => {
                    required.insert(gvk(&parse_listed_property(at, property, &GVK_SHAPE)?));
                }
                PACKAGE => {
                    let value = parse_listed_property(at, property, &PACKAGE_SHAPE)?;
                    let name = quoted(go_field::text(&value, "packageName"));
                    let range = quoted(go_field::text(&value, "version"));
                    if mainstay_fault::is_on("required-packages-are-forgotten") {
                        continue;
                    }
                    declared.push(DeclaredProperty {
                        kind: "olm.package.required".to_owned(),
                        value: format!("{{\"packageName\":{name},\"versionRange\":{range}}}"),
                    });
                }
                _ => declared.push(copied(property)),
            }
        }
        let csv = self.csv();
        let version = csv.version().map_err(|error| error.with_prefix("get version: "))?;
        let release = csv.release().map_err(|error| error.with_prefix("get release: "))?;
        let apis = self.provided().map_err(|error| error.with_prefix("get provided apis: "))?;
        provided.extend(apis.into_iter().map(|api| (api.group, api.kind, api.version)));
        let apis = required_apis(csv).map_err(|error| error.with_prefix("get required apis: "))?;
        required.extend(apis);

        let value = package.unwrap_or_else(|| package_value(self.package(), version, &release));
        declared.push(DeclaredProperty { kind: PACKAGE.to_owned(), value });
        for (kind, keys) in [(GVK, provided), ("olm.gvk.required", required)] {
            for (group, name, version) in keys {
                let (group, name, version) = (quoted(&group), quoted(&name), quoted(&version));
                let value = format!("{{\"group\":{group},\"kind\":{name},\"version\":{version}}}");
                declared.push(DeclaredProperty { kind: kind.to_owned(), value });
            }
        }
        for manifest in &self.manifests {
            let json = manifest.json();
            let mut value = String::with_capacity(json.len() / 3 * 4 + 16);
            value.push_str("{\"data\":\"");
            base64::engine::general_purpose::STANDARD.encode_string(json, &mut value);
            value.push_str("\"}");
            declared.push(DeclaredProperty { kind: OBJECT.to_owned(), value });
        }
        // Objects come last; all others are sorted by type and value.
        let is_object =
            |property: &DeclaredProperty| property.kind == OBJECT || property.kind == METADATA;
        if mainstay_fault::is_on("properties-are-not-sorted") {
            return Ok(declared);
        }
        declared.sort_by(|a, b| {
            (is_object(a), &a.kind, &a.value).cmp(&(is_object(b), &b.kind, &b.value))
        });
        Ok(declared)
    }

    fn declared_images(&self, image: &str) -> Result<Vec<RelatedImage>, BundleError> {
        let csv = self.csv();
        let mut images = csv.related_images()?;
        let known: BTreeSet<String> = images.iter().map(|related| related.image.clone()).collect();
        let unnamed = |image: &str| RelatedImage { name: String::new(), image: image.to_owned() };
        if !image.is_empty() && !known.contains(image) {
            images.push(unnamed(image));
        }
        for operator in csv.operator_images()? {
            if !known.contains(operator) {
                images.push(unnamed(operator));
            }
        }
        let mut order: Vec<&RelatedImage> = images.iter().collect();
        sort_slice(&mut order, |a, b| a.image < b.image);
        Ok(order.into_iter().cloned().collect())
    }
}

/// Group, kind and version.
type Gvk = (String, String, String);

fn gvk(value: &Value) -> Gvk {
    let text = |name| go_field::text(value, name).to_owned();
    (text("group"), text("kind"), text("version"))
}

fn required_apis(csv: CsvManifest<'_>) -> Result<Vec<Gvk>, BundleError> {
    let mut found = Vec::new();
    for api in csv.custom_resources()?.required {
        let key = csv.custom_resource_key(api)?;
        found.push((key.group, key.kind, key.version));
    }
    for api in csv.api_services()?.required {
        let key = bundle::api_service_key(api);
        found.push((key.group, key.kind, key.version));
    }
    Ok(found)
}

fn package_value(name: &str, version: &str, release: &str) -> String {
    let mut value = format!("{{\"packageName\":{},\"version\":{}", quoted(name), quoted(version));
    if !release.is_empty() {
        value.push_str(",\"release\":");
        value.push_str(&quoted(release));
    }
    value.push('}');
    value
}

/// The value of a property, if it has its Go type.
fn parse_property(
    property: &BundleProperty,
    shape: &'static DeclaredStruct,
) -> Result<Value, BundleError> {
    let refused = |message: String| {
        let problem = BundleProblem {
            file: property.file.clone(),
            line: None,
            message: format!("the value of {} cannot be read: {message}", property.kind),
            remedy: "correct the value".into(),
        };
        BundleError::new(message, problem)
    };
    let Some(text) = &property.value else {
        return Err(refused("unexpected end of JSON input".to_owned()));
    };
    let value: Value = serde_json::from_str(text).map_err(|error| refused(error.to_string()))?;
    match gojson::check_struct(&value, shape) {
        Ok(()) => Ok(value),
        Err(mismatch) => Err(refused(mismatch.reason.to_string())),
    }
}

fn parse_listed_property(
    at: usize,
    property: &BundleProperty,
    shape: &'static DeclaredStruct,
) -> Result<Value, BundleError> {
    let kind = mainstay_gocompat::quote(&property.kind);
    parse_property(property, shape)
        .map_err(|error| error.with_prefix(&format!("parse property[{at}] of type {kind}: ")))
}
