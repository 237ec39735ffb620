//! `mainstay bundle render`: the plain manifests that install a bundle.

use crate::catalog::{Io, open, plain};
use crate::config::reason;
use crate::exit::Failure;
use clap::{Args, ValueEnum};
use mainstay_bundle::render::{
    CertManager, Certificates, Content, DeploymentConfig, Install, RenderError, ServiceCa,
    Settings, Stage,
};
use mainstay_bundle::{Folder, Limits};
use mainstay_cause::{Cause, Place};
use serde_json::{Map, Value, json};

/// Arguments of `render`.
#[derive(Args, Debug)]
pub(super) struct Arguments {
    /// Folder of a bundle (with `manifests` and `metadata`).
    #[arg(value_name = "DIR")]
    path: String,
    /// The namespace that the operator runs in.
    #[arg(short, long, value_name = "NAMESPACE", default_value = "operators")]
    namespace: String,
    /// A namespace to watch, if the bundle supports that (repeatable) [default: all].
    #[arg(long, value_name = "NAMESPACE")]
    watch: Vec<String>,
    /// File with the configuration of an extension: `watchNamespace`, `deploymentConfig`.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["watch", "deployment_config"])]
    config: Option<String>,
    /// File with changes in the deployments: what stands below `deploymentConfig`.
    #[arg(long, value_name = "FILE")]
    deployment_config: Option<String>,
    /// Who provides the certificates of webhooks.
    #[arg(long, value_enum, value_name = "PROVIDER", default_value_t = Provider::CertManager)]
    certificates: Provider,
    /// Print what may be configured of the bundle, as a JSON schema, instead of manifests.
    #[arg(long, conflicts_with_all = ["watch", "config", "deployment_config"])]
    schema: bool,
    /// How it is written: YAML documents, or one JSON list.
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
    /// Nobody: bundles with webhooks are refused.
    None,
}

impl Provider {
    fn certificates(self) -> Option<&'static dyn Certificates> {
        match self {
            Self::CertManager => Some(&CertManager),
            Self::ServiceCa => Some(&ServiceCa),
            Self::None => None,
        }
    }
}

pub(super) fn run(arguments: &Arguments, io: &mut Io<'_>) -> Result<(), Failure> {
    let opened = open(io, &arguments.path)?;
    if !opened.is_bundle {
        return Err(Failure::usage(
            Cause::new("the folder holds no bundle")
                .at(Place::file(&opened.typed))
                .remedy("name a folder that has the folders manifests and metadata"),
        ));
    }
    let content = Content::read(&Folder::new(&opened.path), &Limits::default())
        .map_err(|error| refused(arguments, &error))?;
    if arguments.schema {
        print(io, arguments.output, &content.schema());
        return Ok(());
    }
    let objects = objects(arguments, &content, io)?;
    match arguments.output {
        Output::Yaml => objects.iter().for_each(|object| {
            io.print("---\n");
            print(io, Output::Yaml, object);
        }),
        Output::Json => {
            let list = json!({"apiVersion": "v1", "kind": "List", "items": objects});
            print(io, Output::Json, &list);
        }
    }
    Ok(())
}

fn print(io: &mut Io<'_>, output: Output, value: &Value) {
    let text = match output {
        Output::Yaml => mainstay_yaml::to_string(value),
        Output::Json => format!("{value:#}\n"),
    };
    io.print(&text);
}

fn objects(arguments: &Arguments, content: &Content, io: &Io<'_>) -> Result<Vec<Value>, Failure> {
    let failed = |error: RenderError| refused(arguments, &error);
    let certificates = arguments.certificates.certificates();
    let deployments = match &arguments.deployment_config {
        Some(file) => Some(deployments(file, &text_of(file, io)?)?),
        None => None,
    };
    let config = match (&arguments.config, &arguments.watch[..]) {
        (Some(file), _) => Some(text_of(file, io)?),
        (None, []) if deployments.is_none() => None,
        (None, watch @ ([] | [_])) => {
            let mut config = Map::new();
            if let Some(watch) = watch.first() {
                config.insert("watchNamespace".to_owned(), watch.as_str().into());
            }
            if let Some(deployments) = deployments {
                config.insert("deploymentConfig".to_owned(), deployments);
            }
            Some(Value::Object(config).to_string().into_bytes())
        }
        // An extension cannot be configured so; the renderer can, if the bundle supports it.
        (None, several) => {
            content.check_aggregation().map_err(failed)?;
            let deployments = deployments.map(|value| DeploymentConfig::read(&value)).transpose();
            let deployments = deployments.map_err(|why| {
                let cause = Cause::new("the configuration of deployments cannot be used");
                Failure::usage(cause.because(Cause::new(plain(&why))))
            })?;
            let settings = Settings {
                namespace: &arguments.namespace,
                targets: several,
                certificates,
                deployment_config: deployments.as_ref(),
            };
            return content.render(&settings).map_err(failed);
        }
    };
    let install = Install {
        certificates,
        config: config.as_deref(),
        ..Install::into_namespace(&arguments.namespace)
    };
    content.install(&install).map_err(failed)
}

fn text_of(file: &str, io: &Io<'_>) -> Result<Vec<u8>, Failure> {
    std::fs::read(io.folder.join(file)).map_err(|error| {
        let cause = Cause::new(reason(&error)).at(Place::file(file));
        Failure::usage(cause.remedy("name a file with YAML or JSON"))
    })
}

fn deployments(file: &str, text: &[u8]) -> Result<Value, Failure> {
    mainstay_yaml::one(text, &mainstay_yaml::Options::default()).map_err(|error| {
        let place = Place::at(file, error.line, error.column);
        Failure::usage(Cause::new(plain(&error.message)).at(place).remedy("correct the file"))
    })
}

/// Why there are no manifests, with what to do.
fn refused(arguments: &Arguments, error: &RenderError) -> Failure {
    let folder = &arguments.path;
    let (usage, remedy) = match error.stage() {
        Stage::Read | Stage::Bundle => {
            (false, format!("see all that is wrong with: mainstay bundle validate {folder}"))
        }
        Stage::Support => (
            false,
            "OLM v1 does not install such bundles; a Subscription (OLM classic) may".to_owned(),
        ),
        Stage::Configuration => (
            true,
            format!("see what may be configured with: mainstay bundle render {folder} --schema"),
        ),
        Stage::Settings => {
            (true, "watch namespaces that the install modes of the bundle allow".to_owned())
        }
    };
    let mut message = error.message();
    for before in ["invalid ClusterExtension configuration: ", "invalid configuration: "] {
        message = message.strip_prefix(before).unwrap_or(message);
    }
    message = message.strip_prefix("multiple errors found:\n").unwrap_or(message);
    let mut lines = message.lines().map(|line| Cause::new(plain(line.trim_start_matches("  - "))));
    let cause = Cause::new("the bundle cannot be rendered").at(Place::file(folder));
    let cause = cause.because_all(&mut lines).remedy(remedy);
    if usage { Failure::usage(cause) } else { cause.into() }
}
