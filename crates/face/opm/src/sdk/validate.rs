//! `operator-sdk bundle validate`.

use super::super::bundle::validate::faults;
use super::super::call::{Call, End, Io};
use super::super::go;
use super::super::pull::{Images, Way};
use super::super::reference::Reach;
use super::super::tool::Tool;
use super::super::voice::{self, Level};
use super::images::Asked;
use super::outcome::Outcome;
use super::{external, metadata, optional};
use mainstay_bundle::validate::{Findings, Library, Settings, Subject, Validator, sdk_objects};
use mainstay_bundle::{Folder, Limits, Reading};
use mainstay_image::registry::Security;
use mainstay_object::selector::LabelSelector;

/// The label of a bundle that says where its manifests are.
const MANIFESTS: &str = "operators.operatorframework.io.bundle.manifests.v1";

const COMMUNITY: &str = "The Optional(stage: alpha) Community Operator bundle validator is deprecated and will be \
                         removed in a future release. You can do these checks using the external validator: \
                         https://github.com/redhat-openshift-ecosystem/ocp-olm-catalog-validator/";

pub(super) async fn run(call: &mut Call<'_, '_>) -> Result<(), End> {
    let raw = call.flags.text("select-optional").to_owned();
    let selector = LabelSelector::parse(&raw).map_err(|error| End::Fatal(error.to_string()))?;
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
    let mut settings = Settings { library: Library::V034, ..Settings::default() };
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
    let outcome = asked.answer(call.io).await.map_err(End::Fatal)?;
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

/// What is asked.
struct Question {
    bundle: String,
    builder: String,
    selector: Option<LabelSelector>,
    settings: Settings,
    external: String,
    verbose: bool,
}

impl Question {
    async fn answer(mut self, io: &mut Io<'_>) -> Result<Outcome, String> {
        let tool = Tool::named(&self.builder);
        if tool.is_none() && self.builder != "none" {
            let builder = &self.builder;
            return Err(format!(
                "error creating image registry: unrecognized image-builder option: {builder}"
            ));
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
        let place = tempfile::Builder::new()
            .prefix("bundle-")
            .tempdir()
            .map_err(|error| go::reason(&error))?;
        let root = place.path().join("bundle");
        voice::info(io, "Unpacking image layers");
        let name = &self.bundle;
        let unpacked = if let Some(tool) = tool {
            tool.unpack(io, name, &root, Reach::Verified)
        } else {
            let images = Images::new(Security::Tls, Way::Containerd(Vec::new()));
            let pulled = images.pull(io, name).await;
            pulled.and_then(|image| images.unpack(io, &image, &root, Vec::new()))
        };
        unpacked.map_err(|why| format!("error unpacking image {name}: {why}"))?;
        self.judge(io, &root.to_string_lossy())
    }

    /// Judges the bundle in a folder, which is there.
    fn judge(&self, io: &mut Io<'_>, folder: &str) -> Result<Outcome, String> {
        let limits = Limits::default();
        let annotations = metadata::find(io, folder)?;
        let manifests = annotations.get(MANIFESTS).map_or("manifests", String::as_str);
        let manifests = go::join(folder, &go::clean(manifests));
        let tree = Folder::new(io.at(&manifests));
        let reading = Reading::new(&tree, &limits);
        let media = reading.media_type("", &manifests).map_err(|error| error.to_string())?;
        let loaded = reading.load("", &manifests, self.settings.library);
        if let Some(why) = loaded.refusal {
            return Err(why);
        }
        let Some(subject) = loaded.subject else {
            return Err(format!("unable to find a csv in bundle directory {manifests}"));
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
    fn content(&self, subject: &Subject, media: &str) -> Vec<Findings> {
        if media == "helm" {
            return Vec::new();
        }
        let order = [Validator::Bundle, Validator::Csv, Validator::Crd];
        let mut all: Vec<Findings> = order
            .into_iter()
            .flat_map(|validator| validator.run(subject, &self.settings, None))
            .collect();
        let further = sdk_objects(subject, media, self.settings.library);
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
