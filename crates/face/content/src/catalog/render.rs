//! `mainstay catalog render`: the documents of catalogs and bundles, all or some of them.

use super::open::OpenedPath;
use clap::{Args, ValueEnum};
use mainstay_bundle::{Bundle, BundleError, BundleImage};
use mainstay_catalog::{
    CatalogDocuments, CatalogFormat, KeptContent, LoadError, LoadOptions, Rendition, WriteError,
};
use mainstay_cause::{Cause, FileLocation};
use mainstay_command::cluster::ConnectionArguments;
use mainstay_command::exit::CommandFailure;
use mainstay_command::io::CommandIo;
use mainstay_command::text::escape_controls;
use std::fmt::Write as _;
use std::io::{BufWriter, Write as _};

/// Arguments of `render`.
#[derive(Args, Debug)]
pub(super) struct Arguments {
    /// Folders of catalogs or of bundles (with `manifests` and `metadata`), or clustercatalog/NAME.
    #[arg(value_name = "PATH", required = true)]
    pub(super) paths: Vec<String>,
    /// Only documents of this schema, such as `olm.channel`.
    #[arg(long, value_name = "SCHEMA")]
    schema: Option<String>,
    /// Only documents of this package, including the package itself.
    #[arg(long, value_name = "PACKAGE")]
    pub(super) package: Option<String>,
    /// Only documents of this name.
    #[arg(long, value_name = "NAME")]
    name: Option<String>,
    /// Output format: whole documents, or only their names and places.
    #[arg(short, long, value_enum, value_name = "FORMAT", default_value_t = Output::Json)]
    output: Output,
    /// The cluster of ClusterCatalogs.
    #[command(flatten, next_help_heading = "Cluster")]
    pub(super) connection: ConnectionArguments,
}

/// Formats of documents.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Output {
    Json,
    Yaml,
    Name,
}

pub(super) fn run(
    arguments: &Arguments,
    opened: &[OpenedPath],
    io: &mut CommandIo<'_>,
) -> Result<(), CommandFailure> {
    let mut output = Rendition::default();
    let mut names = String::new();
    for opened in opened {
        let mut rendition = read(opened)?;
        let matches = |wanted: &Option<String>, text: &str| {
            wanted.as_ref().is_none_or(|wanted| wanted == text)
        };
        rendition.retain(|blob| {
            matches(&arguments.schema, &blob.schema)
                && matches(&arguments.package, &blob.package)
                && matches(&arguments.name, &blob.name)
        });
        if arguments.output == Output::Name {
            for (blob, origin) in rendition.names() {
                let place = origin.map_or_else(
                    || opened.argument().to_owned(),
                    |origin| opened.below(&origin.to_string()),
                );
                let _ = writeln!(
                    names,
                    "{}: {}",
                    escape_controls(&place),
                    escape_controls(&blob.to_string())
                );
            }
        }
        output.append(rendition);
    }
    let format = match arguments.output {
        Output::Json => CatalogFormat::Json,
        Output::Yaml => CatalogFormat::Yaml,
        Output::Name => {
            io.print(&names);
            return Ok(());
        }
    };
    let mut out = BufWriter::with_capacity(1 << 16, &mut *io.stdout);
    match output.write(format, &mut out).and_then(|()| Ok(out.flush()?)) {
        // The output sink keeps a write error.
        Ok(()) | Err(WriteError::Io(_)) => Ok(()),
        Err(error) => Err(Cause::new(error.to_string()).into()),
    }
}

fn read(opened: &OpenedPath) -> Result<Rendition, CommandFailure> {
    let cause = |why: String| {
        let what = match opened {
            OpenedPath::Folder(_) => "the folder cannot be read",
            OpenedPath::ClusterCatalog(_) => "the catalog cannot be read",
        };
        Cause::new(what)
            .at(FileLocation::file(opened.argument()))
            .because(Cause::new(escape_controls(&why)))
            .remedy(format!(
                "see all problems with: mainstay catalog validate {}",
                opened.argument()
            ))
    };
    if let Some(folder) = opened.bundle_folder() {
        let failed = |error: BundleError| CommandFailure::from(cause(error.problem().to_string()));
        let bundle = Bundle::read(&folder.path).map_err(failed)?;
        let mut rendition = Rendition::default();
        rendition.add(&bundle.declare(BundleImage::None, &folder.argument).map_err(failed)?);
        return Ok(rendition);
    }
    let options = LoadOptions { keep: KeptContent::Light, ..LoadOptions::default() };
    let failed = |error: LoadError| CommandFailure::from(cause(error.headline()));
    let declared = CatalogDocuments::read(opened.source(), &options).map_err(failed)?;
    Ok(Rendition::of(&declared))
}
