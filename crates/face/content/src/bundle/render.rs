//! `mainstay bundle render`: the plain manifests that install bundles.

use crate::catalog::open;
use clap::{Args, ValueEnum};
use mainstay_bundle::render::{
    CertManager, CertificateProvider, ConfigurationError, DeploymentConfig, InstallSettings,
    RegistryV1Bundle, RenderError, RenderSettings, RenderStage, ServiceCa,
};
use mainstay_bundle::{BundleFolder, Limits};
use mainstay_cause::{Cause, FileLocation};
use mainstay_command::exit::{CommandFailure, ExitStatus};
use mainstay_command::io::CommandIo;
use mainstay_command::text::escape_controls;
use mainstay_gocompat::io_error_text;
use serde_json::{Map, Value};

/// Arguments of `render`.
#[derive(Args, Debug)]
pub(super) struct Arguments {
    /// Folders of bundles (with `manifests` and `metadata`).
    #[arg(value_name = "DIR", required = true)]
    folders: Vec<String>,
    /// The namespace that the operator runs in.
    #[arg(short, long, value_name = "NAMESPACE", default_value = "operators")]
    namespace: String,
    /// A namespace to watch, if the bundle supports that (repeatable) [default: all].
    #[arg(long, value_name = "NAMESPACE")]
    watch: Vec<String>,
    /// File with the configuration of an extension: `watchNamespace`, `deploymentConfig`.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["watch", "deployment_config"])]
    config: Option<String>,
    /// File with changes of the Deployments: the content of `deploymentConfig`.
    #[arg(long, value_name = "FILE")]
    deployment_config: Option<String>,
    /// Provider of the certificates of webhooks.
    #[arg(long, value_enum, value_name = "PROVIDER", default_value_t = Provider::CertManager)]
    certificates: Provider,
    /// Print the JSON schema of the bundle's configuration, instead of manifests.
    #[arg(long, conflicts_with_all = ["watch", "config", "deployment_config"])]
    schema: bool,
    /// Output format: YAML documents, or one JSON List.
    #[arg(short, long, value_enum, value_name = "FORMAT", default_value_t = Output::Yaml)]
    output: Output,
}

/// Formats of manifests.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Output {
    Yaml,
    Json,
}

/// Providers of certificates.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Provider {
    /// cert-manager: an issuer and a certificate for each deployment with webhooks.
    CertManager,
    /// OpenShift's service CA: annotations.
    ServiceCa,
    /// No provider: bundles with webhooks are refused.
    None,
}

impl Provider {
    fn certificates(self) -> Option<&'static dyn CertificateProvider> {
        match self {
            Self::CertManager => Some(&CertManager),
            Self::ServiceCa => Some(&ServiceCa),
            Self::None => None,
        }
    }
}

pub(super) fn run(
    arguments: &Arguments,
    io: &mut CommandIo<'_>,
) -> Result<ExitStatus, CommandFailure> {
    let options = RenderOptions::read(arguments, io)?;
    let mut printer = Printer::new(arguments);
    if let [folder] = arguments.folders.as_slice() {
        render_bundle(arguments, folder, &options, &mut printer, io)?;
        printer.end(io);
        return Ok(ExitStatus::Done);
    }
    let mut exit = ExitStatus::Done;
    for folder in &arguments.folders {
        if let Err(failure) = render_bundle(arguments, folder, &options, &mut printer, io) {
            // Earlier manifests are written before the error.
            let _ = io.stdout.flush();
            let _ = write!(io.stderr, "error: {}", failure.cause.render());
            if exit != ExitStatus::Usage {
                exit = failure.exit;
            }
        }
    }
    if printer.began || exit == ExitStatus::Done {
        printer.end(io);
    }
    Ok(exit)
}

/// Renders one bundle and prints its manifests.
fn render_bundle(
    arguments: &Arguments,
    folder: &str,
    options: &RenderOptions,
    printer: &mut Printer,
    io: &mut CommandIo<'_>,
) -> Result<(), CommandFailure> {
    let opened = open(io, folder)?;
    if !opened.is_bundle {
        return Err(CommandFailure::usage(
            Cause::new("the folder holds no bundle")
                .at(FileLocation::file(&opened.argument))
                .remedy("name a folder that has the folders manifests and metadata"),
        ));
    }
    let failed = |error: RenderError| render_failure(folder, &error);
    let content = RegistryV1Bundle::read(&BundleFolder::new(&opened.path), &Limits::default())
        .map_err(failed)?;
    if arguments.schema {
        printer.print(io, &content.schema());
        return Ok(());
    }
    for object in options.objects(arguments, content).map_err(failed)? {
        printer.print(io, &object);
    }
    Ok(())
}

/// Prints values one after another, as soon as each is ready.
struct Printer {
    output: Output,
    /// Whether values are items of one List.
    list: bool,
    /// Whether a separator line precedes each document.
    separate: bool,
    began: bool,
}

impl Printer {
    fn new(arguments: &Arguments) -> Self {
        let Arguments { output, schema, folders, .. } = arguments;
        Self {
            output: *output,
            list: *output == Output::Json && !schema,
            separate: !schema || folders.len() > 1,
            began: false,
        }
    }

    fn print(&mut self, io: &mut CommandIo<'_>, value: &Value) {
        let before = match (self.list, self.began) {
            (true, false) => "{\n  \"apiVersion\": \"v1\",\n  \"items\": [\n    ",
            (true, true) => ",\n    ",
            (false, _) if self.separate && self.output == Output::Yaml => "---\n",
            (false, _) => "",
        };
        io.print(before);
        self.began = true;
        let text = match self.output {
            Output::Yaml => mainstay_yaml::to_string(value),
            Output::Json if self.list => format!("{value:#}").replace('\n', "\n    "),
            Output::Json => format!("{value:#}\n"),
        };
        io.print(&text);
    }

    fn end(&self, io: &mut CommandIo<'_>) {
        if !self.list {
            return;
        }
        if self.began {
            io.print("\n  ],\n  \"kind\": \"List\"\n}\n");
        } else {
            io.print("{\n  \"apiVersion\": \"v1\",\n  \"items\": [],\n  \"kind\": \"List\"\n}\n");
        }
    }
}

/// The options of every bundle.
enum RenderOptions {
    /// The configuration of a ClusterExtension.
    ExtensionConfig(Option<Vec<u8>>),
    /// Several namespaces, which a ClusterExtension cannot have; the renderer can, if the bundle
    /// supports them.
    MultipleNamespaces(Option<DeploymentConfig>),
}

impl RenderOptions {
    fn read(arguments: &Arguments, io: &CommandIo<'_>) -> Result<Self, CommandFailure> {
        let deployment_config = match &arguments.deployment_config {
            Some(file) => Some(deployment_config(file, &text_of(file, io)?)?),
            None => None,
        };
        let watch = match (&arguments.config, &arguments.watch[..]) {
            (Some(file), _) => return Ok(Self::ExtensionConfig(Some(text_of(file, io)?))),
            (None, []) if deployment_config.is_none() => return Ok(Self::ExtensionConfig(None)),
            (None, []) => None,
            (None, [watch]) => Some(watch),
            (None, _) => {
                let config =
                    deployment_config.map(|value| DeploymentConfig::read(&value)).transpose();
                let config = config.map_err(|error| {
                    let cause = Cause::new("the configuration of deployments cannot be used");
                    CommandFailure::usage(
                        cause.because(Cause::new(escape_controls(&error.to_string()))),
                    )
                })?;
                return Ok(Self::MultipleNamespaces(config));
            }
        };
        let mut config = Map::new();
        if let Some(watch) = watch {
            config.insert("watchNamespace".to_owned(), watch.as_str().into());
        }
        if let Some(deployment_config) = deployment_config {
            config.insert("deploymentConfig".to_owned(), deployment_config);
        }
        Ok(Self::ExtensionConfig(Some(Value::Object(config).to_string().into_bytes())))
    }

    fn objects(
        &self,
        arguments: &Arguments,
        content: RegistryV1Bundle,
    ) -> Result<Vec<Value>, RenderError> {
        let certificates = arguments.certificates.certificates();
        match self {
            Self::ExtensionConfig(config) => content.into_installed(&InstallSettings {
                certificates,
                config: config.as_deref(),
                ..InstallSettings::into_namespace(&arguments.namespace)
            }),
            Self::MultipleNamespaces(deployment_config) => {
                content.check_api_services()?;
                content.into_rendered(&RenderSettings {
                    namespace: &arguments.namespace,
                    targets: &arguments.watch,
                    certificates,
                    deployment_config: deployment_config.as_ref(),
                    ..RenderSettings::default()
                })
            }
        }
    }
}

fn text_of(file: &str, io: &CommandIo<'_>) -> Result<Vec<u8>, CommandFailure> {
    std::fs::read(io.folder.join(file)).map_err(|error| {
        let cause = Cause::new(io_error_text(&error)).at(FileLocation::file(file));
        CommandFailure::usage(cause.remedy("name a file with YAML or JSON"))
    })
}

fn deployment_config(file: &str, text: &[u8]) -> Result<Value, CommandFailure> {
    mainstay_yaml::one(text, &mainstay_yaml::Options::default()).map_err(|error| {
        let place = FileLocation::at(file, error.line, error.column);
        CommandFailure::usage(
            Cause::new(escape_controls(&error.fault.to_string()))
                .at(place)
                .remedy("correct the file"),
        )
    })
}

/// The failure of rendering, with its remedy.
fn render_failure(folder: &str, error: &RenderError) -> CommandFailure {
    let (usage, remedy) = match error.stage() {
        RenderStage::Read | RenderStage::Bundle => {
            (false, format!("see all problems with: mainstay bundle validate {folder}"))
        }
        RenderStage::Support => (
            false,
            "OLM v1 does not install such bundles; a Subscription (OLM classic) may".to_owned(),
        ),
        RenderStage::Configuration => (
            true,
            format!(
                "print the schema of the configuration with: mainstay bundle render {folder} --schema"
            ),
        ),
        RenderStage::Settings => {
            (true, "name namespaces that the install modes of the bundle allow".to_owned())
        }
    };
    let message = match error {
        RenderError::Configure(ConfigurationError::ParseYaml(reason)) => reason.clone(),
        RenderError::Configure(ConfigurationError::Schema { findings }) => findings.join("\n"),
        error => error.message(),
    };
    let mut lines = message.lines().map(|line| Cause::new(escape_controls(line)));
    let cause = Cause::new("the bundle cannot be rendered").at(FileLocation::file(folder));
    let cause = cause.because_all(&mut lines).remedy(remedy);
    if usage { CommandFailure::usage(cause) } else { cause.into() }
}
