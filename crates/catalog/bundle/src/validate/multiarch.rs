//! The validator `multiarch`: platforms of images, compared with labels and node affinity.
//!
//! Upstream iterates over maps, so its findings have a random order; these are sorted by image.

use super::{
    LibraryVersion, ValidatorSettings,
    csv::labels,
    csv_fields::{field_at, items, texts},
    finding::{BadValue, ManifestResult, ValidationFinding, field_path},
    load::LoadedBundle,
};
use crate::go_field;
use mainstay_gocompat::quote;
use serde_json::Value;
use std::{
    collections::{BTreeMap, BTreeSet},
    error::Error,
    fmt,
};

const ARCH: &str = "operatorframework.io/arch.";
const OS: &str = "operatorframework.io/os.";

/// A source of image manifests: a registry, or a container tool.
pub trait ImageInspector {
    /// The manifest, or the manifest list, of an image as JSON.
    ///
    /// # Errors
    /// Why the manifest is not available; the message becomes part of a finding.
    fn manifest(&mut self, image: &str) -> Result<String, Box<dyn Error>>;
}

/// Why the platforms of an image are unknown.
#[derive(Debug, thiserror::Error)]
enum InspectError {
    /// The manifest is not available.
    #[error("{0}")]
    GetManifest(Box<dyn Error>),
    /// The manifest is not JSON.
    #[error(transparent)]
    ParseManifest(#[from] serde_json::Error),
}

/// A platform of an image.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Platform {
    os: String,
    arch: String,
}

impl fmt::Display for Platform {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.os, self.arch)
    }
}

/// The platforms of images by image; none if they are unknown.
type PlatformsByImage = BTreeMap<String, Option<Vec<Platform>>>;

/// A list of texts as `%q` prints it.
fn quote_list<T: fmt::Display>(texts: &[T]) -> String {
    let texts: Vec<String> = texts.iter().map(|text| quote(&text.to_string())).collect();
    format!("[{}]", texts.join(" "))
}

/// Validates a bundle.
pub(crate) fn validate(
    subject: &LoadedBundle,
    settings: &ValidatorSettings,
    images: &mut dyn ImageInspector,
) -> ManifestResult {
    let tool = settings.container_tool.as_str();
    let mut found = ManifestResult::new(subject.name.clone());
    let bad = || BadValue::Text(subject.csv_name().to_owned());
    let location = field_path(&["metadata", "labels"]);
    if !matches!(tool, "" | "none" | "docker" | "podman") {
        let detail = format!(
            "invalid value (container-tools) for ({tool}). One of: [docker, podman, none] (If not set, the \
             default value is docker)"
        );
        let finding = ValidationFinding::error("ValidationFailed", bad(), detail);
        found.add(finding.with_remedy("write docker or podman"));
        return found;
    }
    let mut check = Check::new(subject);
    check.inspect(images, settings.library);
    check.check_labels();
    check.check_missing_labels();
    check.check_other_images();
    check.check_affinity();
    for detail in check.errors {
        let finding = ValidationFinding::error("ValidationFailed", bad(), detail);
        let remedy = "build the image for it, or remove the label";
        found.add(finding.at(subject.csv.0, &location).with_remedy(remedy));
    }
    for detail in check.warnings {
        let finding = ValidationFinding::warning("ValidationFailed", bad(), detail);
        let remedy = "make labels, images and node affinity agree";
        found.add(finding.at(subject.csv.0, &location).with_remedy(remedy));
    }
    found
}

struct Check {
    arch_labels: Vec<String>,
    os_labels: Vec<String>,
    managers: PlatformsByImage,
    /// The images of managers, in the order of the deployments.
    manager_images: Vec<String>,
    others: PlatformsByImage,
    related: PlatformsByImage,
    affinity: BTreeMap<String, Vec<Platform>>,
    errors: Vec<String>,
    warnings: Vec<String>,
}

impl Check {
    fn new(subject: &LoadedBundle) -> Self {
        let labelled = |prefix: &str| {
            let found = labels(subject)
                .filter(|(key, value)| key.contains(prefix) && *value == "supported");
            found.map(|(key, _)| key.to_owned()).collect::<Vec<_>>()
        };
        let mut check = Self {
            arch_labels: labelled(ARCH),
            os_labels: labelled(OS),
            managers: PlatformsByImage::new(),
            manager_images: Vec::new(),
            others: PlatformsByImage::new(),
            related: PlatformsByImage::new(),
            affinity: BTreeMap::new(),
            errors: Vec::new(),
            warnings: Vec::new(),
        };
        for (_, pod) in subject.deployments() {
            check.add_deployment(pod);
        }
        for (_, pod) in subject.deployments() {
            for container in items(pod, "containers") {
                let image = go_field::text(container, "image");
                if !check.managers.contains_key(image) {
                    check.others.insert(image.to_owned(), None);
                }
            }
        }
        for image in items(subject.spec(), "relatedImages") {
            check.related.insert(go_field::text(image, "image").to_owned(), None);
        }
        check
    }

    /// Adds the operator's own images of a deployment: that of the container `manager`, or else all
    /// except `kube-rbac-proxy`.
    fn add_deployment(&mut self, pod: &Value) {
        let mut found = false;
        for container in items(pod, "containers") {
            let image = go_field::text(container, "image");
            if self.managers.contains_key(image) {
                continue;
            }
            if go_field::text(container, "name") == "manager" {
                self.add_manager(image);
                found = true;
            }
            self.affinity.insert(image.to_owned(), affinity_platforms(pod));
        }
        if found {
            return;
        }
        for container in items(pod, "containers") {
            let image = go_field::text(container, "image");
            if go_field::text(container, "name") != "kube-rbac-proxy"
                && !self.managers.contains_key(image)
            {
                self.add_manager(image);
            }
        }
    }

    fn add_manager(&mut self, image: &str) {
        self.managers.insert(image.to_owned(), None);
        self.manager_images.push(image.to_owned());
    }

    fn inspect(&mut self, images: &mut dyn ImageInspector, library: LibraryVersion) {
        let groups = [&mut self.managers, &mut self.others, &mut self.related];
        for (image, image_platforms) in groups.into_iter().flatten() {
            // One retry.
            let mut ask = || platforms(images, image, library);
            let found = ask().or_else(|_| ask());
            match found {
                Ok(platforms) => *image_platforms = Some(platforms),
                Err(error) => {
                    self.warnings.push(format!("unable to inspect the image ({image}) : {error}"));
                }
            }
        }
    }

    /// The values of the supported labels, or the default.
    fn labelled_values(labels: &[String], prefix: &str, default: &str) -> Vec<String> {
        if labels.is_empty() {
            return vec![default.to_owned()];
        }
        labels.iter().map(|label| label.replace(prefix, "")).collect()
    }

    /// Each image has each labelled platform.
    fn check_labels(&mut self) {
        let mut missing: BTreeMap<String, Vec<String>> = BTreeMap::new();
        for os in Self::labelled_values(&self.os_labels, OS, "linux") {
            for arch in Self::labelled_values(&self.arch_labels, ARCH, "amd64") {
                let wanted = format!("{os}.{arch}");
                for (image, image_platforms) in
                    self.managers.iter().chain(&self.others).chain(&self.related)
                {
                    let Some(image_platforms) = image_platforms else { continue };
                    if !image_platforms
                        .iter()
                        .any(|platform| format!("{}.{}", platform.os, platform.arch) == wanted)
                    {
                        missing.entry(wanted.clone()).or_default().push(image.clone());
                    }
                }
            }
        }
        for (wanted, mut images) in missing {
            images.sort();
            self.errors.push(format!(
                "not all images specified are providing the support described via the CSV labels. Note that \
                 (OS.architecture): ({wanted}) was not found for the image(s) [{}]",
                images.join(" ")
            ));
        }
    }

    /// The architectures or systems of labels and of the operator's own images.
    fn labelled_or_provided(&self, arch: bool) -> BTreeSet<String> {
        let labelled_values = if arch {
            Self::labelled_values(&self.arch_labels, ARCH, "amd64")
        } else {
            Self::labelled_values(&self.os_labels, OS, "linux")
        };
        let image_platforms = self.managers.values().flatten().flatten();
        let had = image_platforms
            .map(|platform| if arch { platform.arch.clone() } else { platform.os.clone() });
        labelled_values.into_iter().chain(had).collect()
    }

    /// Each architecture and system of the operator's own images has a label.
    fn check_missing_labels(&mut self) {
        for (arch, default, label, what) in
            [(true, "amd64", ARCH, "Arch(s)"), (false, "linux", OS, "OS(s)")]
        {
            let all = self.labelled_or_provided(arch);
            let labels = if arch { &self.arch_labels } else { &self.os_labels };
            // An image that could not be inspected counts as another platform.
            let alone = all.len() == 1 && self.managers.values().all(Option::is_some);
            let missing: Vec<&String> = all
                .iter()
                .filter(|name| !labels.iter().any(|label| label.contains(name.as_str())))
                .filter(|name| !(alone && *name == default))
                .collect();
            if missing.is_empty() {
                continue;
            }
            let more = if arch { "amd64 architectures, you MUST," } else { "linux OS you MUST," };
            self.warnings.push(format!(
                "check if the CSV is missing the label ({label}<value>) for the {what}: {}. Be aware that \
                 your Operator manager image {} provides this support. Thus, it is very likely that you want \
                 to provide it and if you support more than {more}use the required labels for all which are \
                 supported.Otherwise, your solution cannot be listed on the cluster for these architectures",
                quote_list(&missing),
                quote_list(&self.manager_images)
            ));
        }
    }

    /// Other images have the architectures and systems of the operator's own images.
    fn check_other_images(&mut self) {
        let (archs, systems) = (self.labelled_or_provided(true), self.labelled_or_provided(false));
        let mut found = Vec::new();
        for (image, image_platforms) in self.others.iter().chain(&self.related) {
            let Some(image_platforms) = image_platforms else { continue };
            for (all, what, arch) in [(&archs, "Arch(s)", true), (&systems, "OS(s)", false)] {
                let has = |wanted: &String| {
                    image_platforms.iter().any(|platform| {
                        if arch { &platform.arch == wanted } else { &platform.os == wanted }
                    })
                };
                let missing: Vec<&String> = all.iter().filter(|wanted| !has(wanted)).collect();
                if !missing.is_empty() {
                    found.push(format!(
                        "check if the image {image} should not support {}. Note that this CSV has labels \
                         for this {what} Your manager image {} are providing this support OR the CSV is \
                         configured via labels to support it. Then, please verify if this image should not \
                         support it",
                        quote_list(&missing),
                        quote_list(&self.manager_images)
                    ));
                }
            }
        }
        self.warnings.extend(found);
    }

    /// The node affinity of pods has the platforms of their images.
    fn check_affinity(&mut self) {
        let mut found = Vec::new();
        for (image, image_platforms) in self.managers.iter().chain(&self.others) {
            let unknown = [Platform { os: "error".to_owned(), arch: "error".to_owned() }];
            let has = image_platforms.as_deref().unwrap_or(&unknown);
            let wanted = self.affinity.get(image).map_or(&[][..], Vec::as_slice);
            let image = quote(image);
            if wanted.is_empty() {
                if image_platforms.is_none() {
                    found.push(format!(
                        "check if the CSV is missing a node affinity configuration for the image: {image}. "
                    ));
                }
                found.push(format!(
                    "check if the CSV has a missing or invalid node affinity configuration for the image: \
                     {image}. The image data suggests the following platforms are supported: {}",
                    quote_list(has)
                ));
                continue;
            }
            let extra: Vec<&Platform> =
                wanted.iter().filter(|platform| !has.contains(platform)).collect();
            let missing: Vec<&Platform> =
                has.iter().filter(|platform| !wanted.contains(platform)).collect();
            if !extra.is_empty() {
                found.push(format!(
                    "the CSV includes {} in the node affinity configuration for the image: {image}, but the \
                     image data suggests the following platforms are supported: {}",
                    quote_list(&extra),
                    quote_list(has)
                ));
            }
            if !missing.is_empty() {
                found.push(format!(
                    "the image data indicates {} is supported for the image: {image}, but the node affinity \
                     configuration for the image only specifies {}",
                    quote_list(&missing),
                    quote_list(wanted)
                ));
            }
        }
        self.warnings.extend(found);
    }
}

/// The platforms of an image, without manifests that are not images. The older library does not
/// distinguish these.
fn platforms(
    images: &mut dyn ImageInspector,
    image: &str,
    library: LibraryVersion,
) -> Result<Vec<Platform>, InspectError> {
    let text = images.manifest(image).map_err(InspectError::GetManifest)?;
    let value: Value = serde_json::from_str(&text)?;
    let one = |manifest: &Value| {
        let platform = field_at(manifest, &["platform"]);
        let text = |name: &str| go_field::text(platform, name).to_owned();
        Platform { os: text("os"), arch: text("architecture") }
    };
    let unknown = |text: &str| text.is_empty() || text == "unknown";
    let found = items(&value, "manifests").iter().map(one);
    let all = library == LibraryVersion::V034;
    Ok(found
        .filter(|platform| all || (!unknown(&platform.os) && !unknown(&platform.arch)))
        .collect())
}

/// The platforms of a pod's required node affinity.
fn affinity_platforms(pod: &Value) -> Vec<Platform> {
    let path = ["affinity", "nodeAffinity", "requiredDuringSchedulingIgnoredDuringExecution"];
    let mut found = Vec::new();
    for term in items(field_at(pod, &path), "nodeSelectorTerms") {
        let (mut archs, mut systems) = (Vec::new(), Vec::new());
        for expression in items(term, "matchExpressions") {
            if go_field::text(expression, "operator") != "In" {
                continue;
            }
            let values = || texts(expression, "values").collect();
            match go_field::text(expression, "key") {
                "kubernetes.io/arch" => archs = values(),
                "kubernetes.io/os" => systems = values(),
                _ => {}
            }
        }
        for os in systems {
            for arch in &archs {
                found.push(Platform { os: str::to_owned(os), arch: str::to_owned(arch) });
            }
        }
    }
    found
}
