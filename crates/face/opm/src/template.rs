//! `opm alpha render-template` and `opm alpha convert-template`: catalogs from templates, and templates
//! from catalogs.

use super::call::{Call, CommandIo, Failure};
use super::command::{Action, Arguments, Command};
use super::error::PathError;
use super::flags::Flag;
use super::pull::ImagePuller;
use super::reference;
use super::render::{self, AllowedReferences, Renderer};
use super::{go, graph};
use mainstay_catalog::template::{self, TemplateKind};
use mainstay_catalog::{CatalogFormat, DiagramError, DiagramOptions, Rendition, WriteError};
use std::fmt;
use std::io::{self, BufWriter, Read, Write as _};

/// The maximum size of a template or a catalog in one file, in bytes.
const MAX_BYTES: u64 = 512 << 20;

/// The command `render-template`.
pub(super) fn command() -> Command {
    Command {
        long: "Renders a template as a catalog. TYPE is the kind of the template:\n  \
               basic        a catalog with the images of its bundles\n  \
               semver       images; their versions give the channels and updates\n  \
               substitutes  a catalog, and images of bundles that replace others in it\n\n\
               Without TYPE, the field schema of the template decides. Without FILE, or with -, the template is\n\
               read from standard input; to read a file with the name of a TYPE, give both.\n\n\
               Bundles are pulled from their registries.\n\n  \
               opm alpha render-template template.yaml\n  \
               opm alpha render-template semver template.yaml -o yaml\n  \
               opm alpha render-template -o mermaid < template.yaml",
        arguments: Arguments::Between(0, 2),
        flags: vec![
            render::migrate_level(),
            Flag::text("output", Some('o'), "output format (json|yaml|mermaid)")
                .with_default("json"),
        ],
        action: Some(Action::Async(|call| Box::pin(run(call)))),
        ..Command::new("render-template [TYPE] [FILE]", "Render a template as a catalog")
    }
}

/// The command `convert-template`, with its sub-commands.
pub(super) fn convert_command() -> Command {
    let below = |form, short, long, action| Command {
        long,
        arguments: Arguments::AtMost(1),
        flags: vec![
            Flag::text("output", Some('o'), "output format (json|yaml)").with_default("json"),
        ],
        action: Some(action),
        ..Command::new(form, short)
    };
    let children = vec![
        below(
            "basic [<fbc-file> | -]",
            "Convert a catalog to a basic template",
            "Prints the template that renders as the catalog in a file, or on standard input: bundles become\n\
             references to their images, everything else stays.",
            Action::Sync(|call| convert(call, TemplateKind::Basic)),
        ),
        below(
            "substitutes [<fbc-file> | -]",
            "Convert a catalog to a substitutes template",
            "Prints a template with the catalog in a file, or on standard input, without substitutions.",
            Action::Sync(|call| convert(call, TemplateKind::Substitutes)),
        ),
    ];
    Command { children, ..Command::new("convert-template", "Convert a catalog to a template") }
}

/// The output format.
enum Output {
    Documents(CatalogFormat),
    Mermaid,
}

async fn run(call: &mut Call<'_, '_>) -> Result<(), Failure> {
    let end = Failure::Usage;
    let (kind, file) = match &*call.arguments {
        [] => (None, "-"),
        [one] => match TemplateKind::parse(one) {
            Some(kind) => (Some(kind), "-"),
            None => (None, one.as_str()),
        },
        [name, file, ..] => {
            let kind = TemplateKind::parse(name).ok_or_else(|| {
                let name = go::quote(name);
                let all = TemplateKind::ALL.map(TemplateKind::name).join(" ");
                end(format!("invalid template type {name}, must be one of: [{all}]"))
            })?;
            (Some(kind), file.as_str())
        }
    };
    let file = file.to_owned();
    let opened = open(call.io, &file)
        .map_err(|error| end(format!("unable to open {}: {error}", go::quote(&file))))?;
    let output = match call.flags.text("output") {
        "json" => Output::Documents(CatalogFormat::Json),
        "yaml" => Output::Documents(CatalogFormat::Yaml),
        "mermaid" => Output::Mermaid,
        other => {
            let other = go::quote(other);
            return Err(end(format!(
                "invalid --output value {other}, expected (json|yaml|mermaid)"
            )));
        }
    };
    let access = reference::registry_access(call)
        .map_err(|error| end(format!("creating containerd registry: {error}")))?;
    let level = render::level(call.flags.text("migrate-level")).map_err(Failure::usage)?;
    let text = opened.read(call.io);
    let detect = || match &text {
        Ok(text) => TemplateKind::of(text).map_err(|error| error.to_string()),
        Err(error) => Err(format!("decoding template input: {error}")),
    };
    let kind = kind
        .map_or_else(detect, Ok)
        .map_err(|why| end(format!("auto-detecting template type: {why}")))?;
    let failed = |why: &dyn fmt::Display| end(format!("rendering template: {why}"));
    let text = text.map_err(|error| {
        failed(&match kind {
            TemplateKind::Basic => format!("decoding template schema: {error}"),
            TemplateKind::Semver => format!("render: unable to read file: {error}"),
            TemplateKind::Substitutes => {
                format!("render: unable to parse template: decoding template schema: {error}")
            }
        })
    })?;
    let renderer = Renderer {
        template: None,
        level,
        allowed: AllowedReferences::BUNDLE_IMAGES,
        images: ImagePuller::containers(access.containers()),
    };
    let io = &mut *call.io;
    let images = &mut async |image: &str| renderer.bundle_of(io, image).await;
    let all = kind.render(&text, images).await.map_err(|error| failed(&error))?;
    write(call, &all, &output).map_err(|error| end(format!("writing output: {error}")))
}

/// A rendition cannot be written.
#[derive(Debug, thiserror::Error)]
enum OutputError {
    /// As JSON or YAML documents.
    #[error(transparent)]
    Write(#[from] WriteError),
    /// As a diagram.
    #[error(transparent)]
    Diagram(#[from] DiagramError),
}

/// Writes a rendition.
fn write(call: &mut Call<'_, '_>, all: &Rendition, output: &Output) -> Result<(), OutputError> {
    match output {
        Output::Documents(format) => {
            let mut out = BufWriter::with_capacity(1 << 16, &mut *call.io.stdout);
            match all.write(*format, &mut out).and_then(|()| Ok(out.flush()?)) {
                // An output error means that the reader is gone.
                Ok(()) | Err(WriteError::Io(_)) => Ok(()),
                Err(error) => Err(error.into()),
            }
        }
        Output::Mermaid => {
            let options = DiagramOptions { semantics: true, ..DiagramOptions::default() };
            Ok(graph::print(call.io, all, &options)?)
        }
    }
}

fn convert(call: &mut Call<'_, '_>, kind: TemplateKind) -> Result<(), Failure> {
    let format = render::format(call.flags.text("output")).map_err(Failure::log)?;
    let file = match call.argument(0) {
        "" if call.arguments.is_empty() => "-",
        file => file,
    };
    let file = file.to_owned();
    let opened = open(call.io, &file)
        .map_err(|_| Failure::Usage(format!("unable to open input: {}", go::quote(&file))))?;
    let failed = |why: &dyn fmt::Display| Failure::Usage(format!("converting: {why}"));
    let text = opened.read(call.io).map_err(|error| failed(&error))?;
    let text = template::convert(kind, &text, format).map_err(|error| failed(&error))?;
    call.io.print(&text);
    Ok(())
}

/// An open input.
enum OpenInput {
    Input,
    File(std::fs::File),
}

/// Opens a file; `-` is standard input.
///
/// # Errors
/// If the file cannot be opened.
fn open(io: &CommandIo<'_>, file: &str) -> Result<OpenInput, PathError> {
    if file == "-" {
        return Ok(OpenInput::Input);
    }
    std::fs::File::open(io.resolve_path(file))
        .map(OpenInput::File)
        .map_err(PathError::of("open", file))
}

/// An input cannot be read; upstream's reader calls every file `input`.
#[derive(Debug, thiserror::Error)]
#[error("read input: {}", mainstay_gocompat::io_error_text(.0))]
struct InputError(#[from] io::Error);

impl OpenInput {
    /// Reads the whole input.
    ///
    /// # Errors
    /// If that fails, or the input is too large.
    fn read(self, io: &mut CommandIo<'_>) -> Result<Vec<u8>, InputError> {
        let mut text = Vec::new();
        match self {
            Self::Input => (&mut *io.stdin).take(MAX_BYTES + 1).read_to_end(&mut text),
            Self::File(file) => file.take(MAX_BYTES + 1).read_to_end(&mut text),
        }?;
        if text.len() as u64 > MAX_BYTES {
            return Err(io::Error::from(io::ErrorKind::FileTooLarge).into());
        }
        Ok(text)
    }
}
