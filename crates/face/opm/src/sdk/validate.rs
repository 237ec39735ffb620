//! `operator-sdk bundle validate`.

use super::super::bundle::FetchError;
use super::super::bundle::validate::faults;
use super::super::call::{Call, End, Io};
use super::super::go;
use super::super::pull::{Images, Way};
use super::super::reference::Reach;
use super::super::tool::Tool;
use super::super::voice::{self, Level};
use super::external::ExternalError;
use super::images::Asked;
use super::metadata::MetadataError;
use super::outcome::Outcome;
use super::{external, metadata, optional};
use mainstay_bundle::validate::{
    LibraryVersion, LoadedBundle, ManifestResult, MediaTypeError, Validator, ValidatorSettings,
    validate_sdk_objects,
};
use mainstay_bundle::{BundleFolder, BundleReader, Limits};
use mainstay_image::registry::Security;
use mainstay_object::selector::LabelSelector;
use std::io;

/// The label of a bundle that says where its manifests are.
const MANIFESTS: &str = "operators.operatorframework.io.bundle.manifests.v1";

const COMMUNITY: &str = "The Optional(stage: alpha) Community Operator bundle validator is deprecated and will be \
                         removed in a future release. You can do these checks using the external validator: \
                         https://github.com/redhat-openshift-ecosystem/ocp-olm-catalog-validator/";

pub(super) async fn run(call: &mut Call<'_, '_>) -> Result<(), End> {
    let raw = call.flags.text("select-optional").to_owned();
    let selector = LabelSelector::parse(&raw).map_err(End::fatal)?;
    if call.flags.is_on("list-optional") {
        call.io.print(&optional::table());
        return Ok(());
    }
    let wrong = |why: String| End::Usage(format!("invalid command args: {why}"));
    let [bundle] = call.arguments.as_slice() else {
        return Err(wrong("an image tag or directory is a required argument".to_owned()));
    };
    let output = call.flags.text("output");
    if !matches!(output, "text" | "json-alpha1") {
        return Err(wrong(format!("invalid value for output flag: {output}")));
    }
    if !raw.is_empty() && !optional::ALL.iter().any(|one| one.is_meant(&selector)) {
        let selector = go::quote(&selector.to_string());
        return Err(wrong(format!("selector {selector} does not match any validator labels")));
    }
    if raw == "name=community" {
        voice::log(call.io, Level::Warning, COMMUNITY, &[]);
    }
    let mut settings =
        ValidatorSettings { library: LibraryVersion::V034, ..ValidatorSettings::default() };
    for (key, value) in call.flags.pairs("optional-values") {
        settings.set(&key, &value);
    }
    let asked = Question {
        bundle: bundle.clone(),
        builder: call.flags.text("image-builder").to_owned(),
        selector: (!selector.is_everything()).then_some(selector),
        settings,
        external: call.flags.text("alpha-select-external").to_owned(),
        verbose: call.flags.is_on("verbose"),
    };
    let is_json = output == "json-alpha1";
    let outcome = asked.answer(call.io).await.map_err(End::fatal)?;
    if is_json {
        call.io.print(&outcome.json());
    } else {
        outcome.print(call.io);
    }
    if !outcome.passed() {
        return Err(End::Silent);
    }
    voice::info(call.io, "All validation tests have completed successfully");
    Ok(())
}

/// A bundle cannot be judged.
#[derive(Debug, thiserror::Error)]
enum JudgeError {
    /// Nothing that pulls images has that name.
    #[error("error creating image registry: unrecognized image-builder option: {builder}")]
    UnknownBuilder {
        /// The name.
        builder: String,
    },
    /// There is no folder to unpack its image into.
    #[error("{}", go::reason(.0))]
    TempDir(io::Error),
    /// Its image is not in a folder.
    #[error("error unpacking image {image}: {source}")]
    Unpack {
        /// The image.
        image: String,
        /// Why not.
        source: FetchError,
    },
    /// It has no annotations.
    #[error(transparent)]
    Metadata(#[from] MetadataError),
    /// What its manifests are cannot be told.
    #[error(transparent)]
    MediaType(#[from] MediaTypeError),
    /// Its manifests cannot be read.
    #[error("{said}")]
    Manifests {
        /// What upstream says to them.
        said: String,
    },
    /// It has no ClusterServiceVersion.
    #[error("unable to find a csv in bundle directory {folder}")]
    NoCsv {
        /// The folder of its manifests.
        folder: String,
    },
    /// A program that judges it, too, has no result.
    #[error(transparent)]
    External(#[from] ExternalError),
}

/// What is asked.
struct Question {
    bundle: String,
    builder: String,
    selector: Option<LabelSelector>,
    settings: ValidatorSettings,
    external: String,
    verbose: bool,
}

impl Question {
    async fn answer(mut self, io: &mut Io<'_>) -> Result<Outcome, JudgeError> {
        let tool = Tool::named(&self.builder);
        if tool.is_none() && self.builder != "none" {
            return Err(JudgeError::UnknownBuilder { builder: self.builder });
        }
        if let Some(path) = (io.environment)("OPERATOR_BUNDLE_CATEGORIES") {
            self.settings.categories_from(&io.at(&path));
        }
        if std::fs::metadata(io.at(&self.bundle)).is_ok() {
            let working = io.folder.to_string_lossy().into_owned();
            let path = &self.bundle;
            let whole = if path.starts_with('/') {
                go::clean(path)
            } else {
                go::clean(&format!("{working}/{path}"))
            };
            return self.judge(io, &go::relative(&working, &whole));
        }
        let place =
            tempfile::Builder::new().prefix("bundle-").tempdir().map_err(JudgeError::TempDir)?;
        let root = place.path().join("bundle");
        voice::info(io, "Unpacking image layers");
        let name = &self.bundle;
        let failed = |source| JudgeError::Unpack { image: name.clone(), source };
        if let Some(tool) = tool {
            tool.unpack(io, name, &root, Reach::Verified).map_err(|error| failed(error.into()))?;
        } else {
            let images = Images::new(Security::Tls, Way::Containerd(Vec::new()));
            let image = images.pull(io, name).await.map_err(|error| failed(error.into()))?;
            let unpacked = images.unpack(io, &image, &root, Vec::new());
            unpacked.map_err(|error| failed(error.into()))?;
        }
        self.judge(io, &root.to_string_lossy())
    }

    /// Judges the bundle in a folder, which is there.
    fn judge(&self, io: &mut Io<'_>, folder: &str) -> Result<Outcome, JudgeError> {
        let limits = Limits::default();
        let annotations = metadata::find(io, folder)?;
        let manifests = annotations.get(MANIFESTS).map_or("manifests", String::as_str);
        let manifests = go::join(folder, &go::clean(manifests));
        let tree = BundleFolder::new(io.at(&manifests));
        let reading = BundleReader::new(&tree, &limits);
        let media = reading.media_type("", &manifests)?;
        let loaded = reading.load("", &manifests, self.settings.library);
        if let Some(said) = loaded.refusal {
            return Err(JudgeError::Manifests { said });
        }
        let Some(subject) = loaded.subject else {
            return Err(JudgeError::NoCsv { folder: manifests });
        };

        let mut outcome = Outcome::default();
        let faults = faults(&io.at(folder), folder);
        self.debug(io, folder, &faults);
        if !faults.is_empty() {
            let faults = faults.join(",");
            outcome.error(format!(
                "error validating format in {folder}: Bundle validation errors: {faults}"
            ));
        }
        for found in self.content(&subject, media) {
            outcome.add(&found);
        }
        if let Some(selector) = &self.selector {
            let tool = match self.settings.container_tool.as_str() {
                "podman" => "podman",
                _ => "docker",
            };
            for one in optional::ALL.iter().filter(|one| one.is_meant(selector)) {
                let mut images = Asked { io, tool };
                for found in one.validator.run(&subject, &self.settings, Some(&mut images)) {
                    outcome.add(&found);
                }
            }
        }
        if !self.external.trim().is_empty() {
            external::run(io, &self.external, folder, &mut outcome)?;
        }
        Ok(outcome)
    }

    /// What everybody is asked. What is wrong with further objects stands with what is said of the
    /// ClusterServiceVersion, if something is said under its name.
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

    /// What goes on, for who looks for a fault.
    fn debug(&self, io: &mut Io<'_>, folder: &str, faults: &[String]) {
        if !self.verbose {
            return;
        }
        let fields = [("bundle-dir", folder), ("container-tool", &*self.builder)];
        let has = |fault: &str| faults.iter().any(|known| known == fault);
        let mut said = Vec::new();
        let missing = ["manifests", "metadata"].map(|name| {
            let missing = has(&format!("Unable to locate {name} directory"));
            if !missing {
                said.push(format!("Found {name} directory"));
            }
            missing
        });
        if missing == [false, false] {
            said.push("Getting mediaType info from manifests directory".to_owned());
            if !has("Could not find annotations file") {
                said.push("Found annotations file".to_owned());
            }
            let found = mainstay_bundle::Bundle::read(io.at(folder))
                .is_ok_and(|bundle| !bundle.dependencies().is_empty());
            said.push(if found {
                "Found dependencies file".to_owned()
            } else {
                "Could not find optional dependencies file".to_owned()
            });
        }
        said.push("Validating bundle contents".to_owned());
        for line in said {
            voice::log(io, Level::Debug, &line, &fields);
        }
    }
}
