//! `operator-sdk bundle validate`.

use super::super::bundle::FetchError;
use super::super::bundle::validate::find_format_errors;
use super::super::call::{Call, CommandIo, Failure};
use super::super::go;
use super::super::log::{self, Level};
use super::super::pull::{ImagePuller, PullLibrary};
use super::super::reference::RegistryAccess;
use super::super::tool::Tool;
use super::external::ExternalError;
use super::metadata::MetadataError;
use super::result::ValidationResult;
use super::tool_images::ToolImages;
use super::{external, metadata, optional};
use mainstay_bundle::validate::{
    LibraryVersion, LoadedBundle, ManifestResult, MediaTypeError, Validator, ValidatorSettings,
    validate_sdk_objects,
};
use mainstay_bundle::{BundleFolder, BundleReader, Limits};
use mainstay_image::registry::Security;
use mainstay_object::selector::LabelSelector;
use std::io;

/// The annotation with the folder of the manifests.
const MANIFESTS: &str = "operators.operatorframework.io.bundle.manifests.v1";

const COMMUNITY: &str = "The Optional(stage: alpha) Community Operator bundle validator is deprecated and will be \
                         removed in a future release. You can do these checks using the external validator: \
                         https://github.com/redhat-openshift-ecosystem/ocp-olm-catalog-validator/";

pub(super) async fn run(call: &mut Call<'_, '_>) -> Result<(), Failure> {
    let raw = call.flags.text("select-optional").to_owned();
    let selector = LabelSelector::parse(&raw).map_err(Failure::fatal)?;
    if call.flags.is_on("list-optional") {
        call.io.print(&optional::table());
        return Ok(());
    }
    let invalid_arguments = |why: String| Failure::Usage(format!("invalid command args: {why}"));
    let [bundle] = call.arguments.as_slice() else {
        return Err(invalid_arguments(
            "an image tag or directory is a required argument".to_owned(),
        ));
    };
    let output = call.flags.text("output");
    if !matches!(output, "text" | "json-alpha1") {
        return Err(invalid_arguments(format!("invalid value for output flag: {output}")));
    }
    if !raw.is_empty() && !optional::ALL.iter().any(|one| one.is_selected_by(&selector)) {
        let selector = go::quote(&selector.to_string());
        return Err(invalid_arguments(format!(
            "selector {selector} does not match any validator labels"
        )));
    }
    if raw == "name=community" {
        log::write(call.io, Level::Warning, COMMUNITY, &[]);
    }
    let mut settings =
        ValidatorSettings { library: LibraryVersion::V034, ..ValidatorSettings::default() };
    for (key, value) in call.flags.pairs("optional-values") {
        settings.set(&key, &value);
    }
    let validation = ValidationRun {
        bundle: bundle.clone(),
        builder: call.flags.text("image-builder").to_owned(),
        selector: (!selector.is_everything()).then_some(selector),
        settings,
        external: call.flags.text("alpha-select-external").to_owned(),
        verbose: call.flags.is_on("verbose"),
    };
    let is_json = output == "json-alpha1";
    let result = validation.run(call.io).await.map_err(Failure::fatal)?;
    if is_json {
        call.io.print(&result.json());
    } else {
        result.print(call.io);
    }
    if !result.passed() {
        return Err(Failure::Silent);
    }
    log::info(call.io, "All validation tests have completed successfully");
    Ok(())
}

/// A bundle cannot be validated.
#[derive(Debug, thiserror::Error)]
enum ValidateError {
    /// The image builder is unknown.
    #[error("error creating image registry: unrecognized image-builder option: {builder}")]
    UnknownBuilder {
        /// The name.
        builder: String,
    },
    /// A temporary folder cannot be created.
    #[error("{}", mainstay_gocompat::io_error_text(.0))]
    TempDir(io::Error),
    /// The image cannot be unpacked.
    #[error("error unpacking image {image}: {source}")]
    Unpack {
        /// The image.
        image: String,
        /// The error.
        source: FetchError,
    },
    /// The bundle has no annotations.
    #[error(transparent)]
    Metadata(#[from] MetadataError),
    /// The media type of the manifests is unknown.
    #[error(transparent)]
    MediaType(#[from] MediaTypeError),
    /// The manifests are invalid.
    #[error("{message}")]
    Manifests {
        /// Upstream's text.
        message: String,
    },
    /// The bundle has no ClusterServiceVersion.
    #[error("unable to find a csv in bundle directory {folder}")]
    NoCsv {
        /// The folder of the manifests.
        folder: String,
    },
    /// An external validator has no result.
    #[error(transparent)]
    External(#[from] ExternalError),
}

/// One run of the command.
struct ValidationRun {
    bundle: String,
    builder: String,
    selector: Option<LabelSelector>,
    settings: ValidatorSettings,
    external: String,
    verbose: bool,
}

impl ValidationRun {
    async fn run(mut self, io: &mut CommandIo<'_>) -> Result<ValidationResult, ValidateError> {
        let tool = Tool::from_name(&self.builder);
        if tool.is_none() && self.builder != "none" {
            return Err(ValidateError::UnknownBuilder { builder: self.builder });
        }
        if let Some(path) = (io.environment)("OPERATOR_BUNDLE_CATEGORIES") {
            self.settings.categories_from(&io.resolve_path(&path));
        }
        if std::fs::metadata(io.resolve_path(&self.bundle)).is_ok() {
            let working = io.folder.to_string_lossy().into_owned();
            let path = &self.bundle;
            let whole = if path.starts_with('/') {
                go::clean(path)
            } else {
                go::clean(&format!("{working}/{path}"))
            };
            return self.validate(io, &go::relative(&working, &whole));
        }
        let place =
            tempfile::Builder::new().prefix("bundle-").tempdir().map_err(ValidateError::TempDir)?;
        let root = place.path().join("bundle");
        log::info(io, "Unpacking image layers");
        let name = &self.bundle;
        let failed = |source| ValidateError::Unpack { image: name.clone(), source };
        if let Some(tool) = tool {
            tool.unpack(io, name, &root, RegistryAccess::Verified)
                .map_err(|error| failed(error.into()))?;
        } else {
            let images = ImagePuller::new(Security::Tls, PullLibrary::Containerd(Vec::new()));
            let image = images.pull(io, name).await.map_err(|error| failed(error.into()))?;
            let unpacked = images.unpack(io, &image, &root, Vec::new());
            unpacked.map_err(|error| failed(error.into()))?;
        }
        self.validate(io, &root.to_string_lossy())
    }

    /// Validates the bundle in an existing folder.
    fn validate(
        &self,
        io: &mut CommandIo<'_>,
        folder: &str,
    ) -> Result<ValidationResult, ValidateError> {
        let limits = Limits::default();
        let annotations = metadata::find(io, folder)?;
        let manifests = annotations.get(MANIFESTS).map_or("manifests", String::as_str);
        let manifests = go::join(folder, &go::clean(manifests));
        let tree = BundleFolder::new(io.resolve_path(&manifests));
        let reading = BundleReader::new(&tree, &limits);
        let media = reading.media_type("", &manifests)?;
        let loaded = reading.load("", &manifests, self.settings.library);
        if let Some(message) = loaded.refusal {
            return Err(ValidateError::Manifests { message });
        }
        let Some(subject) = loaded.subject else {
            return Err(ValidateError::NoCsv { folder: manifests });
        };

        let mut result = ValidationResult::default();
        let format_errors = find_format_errors(&io.resolve_path(folder), folder);
        self.debug(io, folder, &format_errors);
        if !format_errors.is_empty() {
            let format_errors = format_errors.join(",");
            result.error(format!(
                "error validating format in {folder}: Bundle validation errors: {format_errors}"
            ));
        }
        for found in self.content(&subject, media) {
            result.add(&found);
        }
        if let Some(selector) = &self.selector {
            let tool = match self.settings.container_tool.as_str() {
                "podman" => "podman",
                _ => "docker",
            };
            for one in optional::ALL.iter().filter(|one| one.is_selected_by(selector)) {
                let mut images = ToolImages { io, tool };
                for found in one.validator.run(&subject, &self.settings, Some(&mut images)) {
                    result.add(&found);
                }
            }
        }
        if !self.external.trim().is_empty() {
            external::run(io, &self.external, folder, &mut result)?;
        }
        Ok(result)
    }

    /// Runs the default validators. Findings about other objects join those with the name of the
    /// ClusterServiceVersion, if there are any.
    fn content(&self, subject: &LoadedBundle, media: &str) -> Vec<ManifestResult> {
        if media == "helm" {
            return Vec::new();
        }
        let order = [Validator::Bundle, Validator::Csv, Validator::Crd];
        let mut all: Vec<ManifestResult> = order
            .into_iter()
            .flat_map(|validator| validator.run(subject, &self.settings, None))
            .collect();
        let further = validate_sdk_objects(subject, media, self.settings.library);
        match all.iter_mut().find(|found| found.name == further.name) {
            None => all.push(further),
            Some(found) => {
                found.errors.extend(further.errors);
                found.warnings.extend(further.warnings);
            }
        }
        all
    }

    /// Logs the steps for debugging.
    fn debug(&self, io: &mut CommandIo<'_>, folder: &str, format_errors: &[String]) {
        if !self.verbose {
            return;
        }
        let fields = [("bundle-dir", folder), ("container-tool", &*self.builder)];
        let has = |error: &str| format_errors.iter().any(|found| found == error);
        let mut message = Vec::new();
        let missing = ["manifests", "metadata"].map(|name| {
            let missing = has(&format!("Unable to locate {name} directory"));
            if !missing {
                message.push(format!("Found {name} directory"));
            }
            missing
        });
        if missing == [false, false] {
            message.push("Getting mediaType info from manifests directory".to_owned());
            if !has("Could not find annotations file") {
                message.push("Found annotations file".to_owned());
            }
            let found = mainstay_bundle::Bundle::read(io.resolve_path(folder))
                .is_ok_and(|bundle| !bundle.dependencies().is_empty());
            message.push(if found {
                "Found dependencies file".to_owned()
            } else {
                "Could not find optional dependencies file".to_owned()
            });
        }
        message.push("Validating bundle contents".to_owned());
        for line in message {
            log::write(io, Level::Debug, &line, &fields);
        }
    }
}
