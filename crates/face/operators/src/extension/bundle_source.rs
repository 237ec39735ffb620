//! Bundles of `mainstay extension rbac`: from a folder or an image, and rendered as an extension installs
//! them.

use mainstay_bundle::render::{
    CertificateProvider, ConfigurationError, InstallSettings, RegistryV1Bundle, RenderError,
    RenderStage,
};
use mainstay_bundle::{Bundle, BundleFolder, Limits};
use mainstay_cause::{Cause, FileLocation};
use mainstay_command::exit::CommandFailure;
use mainstay_command::io::CommandIo;
use mainstay_command::text::escape_controls;
use mainstay_content::catalog::open;
use mainstay_content::image::bundle_content::{UnpackedBundle, unpack_bundle};
use mainstay_content::image::{StoreFolder, TrustArguments};
use mainstay_permissions::{BundleKinds, DocumentedBundle, InstallManifest};
use serde_json::{Map, Value};
use std::path::PathBuf;

/// A bundle in a folder.
pub(super) struct BundleSource {
    /// The folder or image as typed.
    argument: String,
    folder: PathBuf,
    content: RegistryV1Bundle,
    /// Keeps the temporary folder of an image.
    _unpacked: Option<UnpackedBundle>,
}

/// How an extension installs a bundle.
pub(super) struct BundleSettings {
    pub(super) namespace: String,
    /// The configuration of the bundle; empty means none.
    pub(super) config: Map<String, Value>,
    pub(super) certificates: Option<&'static dyn CertificateProvider>,
}

impl BundleSource {
    /// Opens the folder, or fetches the image, that an argument names.
    ///
    /// # Errors
    /// There is no such folder or image, or it holds no bundle.
    pub(super) async fn open(
        io: &mut CommandIo<'_>,
        argument: &str,
        store: &StoreFolder,
        trust: &TrustArguments,
    ) -> Result<Self, CommandFailure> {
        let is_path = argument.is_empty() || argument.starts_with(['.', '/', '~']);
        let (folder, unpacked) = if is_path || io.folder.join(argument).is_dir() {
            let opened = open(io, argument)?;
            if !opened.is_bundle {
                let cause =
                    Cause::new("the folder holds no bundle").at(FileLocation::file(argument));
                return Err(CommandFailure::usage(
                    cause.remedy("name a folder that has the folders manifests and metadata"),
                ));
            }
            (opened.path, None)
        } else {
            let unpacked = Box::pin(unpack_bundle(io, argument, store, trust)).await?;
            (unpacked.folder(), Some(unpacked))
        };
        let read = RegistryV1Bundle::read(&BundleFolder::new(&folder), &Limits::default());
        let content = read.map_err(|error| render_failure(argument, &error))?;
        Ok(Self { argument: argument.to_owned(), folder, content, _unpacked: unpacked })
    }

    /// The name of the bundle.
    pub(super) fn name(&self) -> &str {
        self.content.name()
    }

    /// The package of the bundle.
    pub(super) fn package(&self) -> &str {
        self.content.package()
    }

    /// The objects of an extension that installs the bundle.
    ///
    /// # Errors
    /// The bundle cannot be rendered with these settings.
    pub(super) fn objects(&self, settings: &BundleSettings) -> Result<Vec<Value>, CommandFailure> {
        let config = Value::Object(settings.config.clone()).to_string();
        let install = InstallSettings {
            certificates: settings.certificates,
            config: (!settings.config.is_empty()).then_some(config.as_bytes()),
            ..InstallSettings::into_namespace(&settings.namespace)
        };
        self.content.install(&install).map_err(|error| render_failure(&self.argument, &error))
    }

    /// The manifest of objects of this bundle and of others, which permissions are derived from.
    ///
    /// # Errors
    /// Some objects are of unknown kinds.
    pub(super) fn manifest_of(
        &self,
        objects: &[Value],
        namespace: &str,
    ) -> Result<InstallManifest, CommandFailure> {
        let manifest = InstallManifest::new(objects, &BundleKinds, namespace);
        manifest.map_err(|error| {
            let kinds = error.unknown.iter().map(|unknown| {
                let (kind, name) = (&unknown.kind, &unknown.name);
                let text = format!("{} {} {name}", kind.api_version(), kind.kind);
                Cause::new(escape_controls(&text))
            });
            let cause = Cause::new("OLM v1 installs no bundles with objects of these kinds");
            let cause = cause.at(FileLocation::file(&self.argument)).because_all(kinds);
            cause.remedy("remove the objects from the bundle").into()
        })
    }

    /// The ClusterServiceVersion and the other manifests, as the documentation reads them.
    ///
    /// # Errors
    /// The bundle cannot be read.
    pub(super) fn documented(&self) -> Result<DocumentedContent, CommandFailure> {
        let bundle = Bundle::read(&self.folder).map_err(|error| {
            let problem = error.problem();
            let place = FileLocation::file(format!("{}/{}", self.argument, problem.file));
            Cause::new(escape_controls(&problem.message)).at(place)
        })?;
        let values = bundle.manifests().iter().map(|manifest| manifest.value().clone());
        let (mut csvs, manifests): (Vec<Value>, Vec<Value>) =
            values.partition(|value| value["kind"] == "ClusterServiceVersion");
        Ok(DocumentedContent { csv: csvs.pop().unwrap_or_default(), manifests })
    }
}

/// The parts of a bundle that the documentation reads.
pub(super) struct DocumentedContent {
    csv: Value,
    manifests: Vec<Value>,
}

impl DocumentedContent {
    /// The parts by reference.
    pub(super) fn as_bundle(&self) -> DocumentedBundle<'_> {
        DocumentedBundle { csv: &self.csv, manifests: &self.manifests }
    }
}

/// The failure of reading or rendering a bundle, with its remedy.
fn render_failure(argument: &str, error: &RenderError) -> CommandFailure {
    let (usage, remedy) = match error.stage() {
        RenderStage::Read | RenderStage::Bundle => {
            (false, "correct the bundle; `mainstay bundle validate DIR` shows all problems")
        }
        RenderStage::Support => {
            (false, "OLM v1 does not install such bundles; a Subscription (OLM classic) may")
        }
        RenderStage::Configuration | RenderStage::Settings => (
            true,
            "give the configuration of the bundle with --config FILE, such as `watchNamespace: NAMESPACE`",
        ),
    };
    let message = match error {
        RenderError::Configure(ConfigurationError::ParseYaml(reason)) => reason.clone(),
        RenderError::Configure(ConfigurationError::Schema { findings }) => findings.join("\n"),
        error => error.message(),
    };
    let lines = message.lines().map(|line| Cause::new(escape_controls(line)));
    let cause = Cause::new("the bundle cannot be rendered").at(FileLocation::file(argument));
    let cause = cause.because_all(lines).remedy(remedy);
    if usage { CommandFailure::usage(cause) } else { cause.into() }
}
