//! `opm migrate`: writes a catalog to a folder, with one file for each package.

use super::call::{Call, CommandIo, Failure};
use super::command::{Action, Arguments, Command};
use super::error::PathError;
use super::flags::Flag;
use super::pull::ImagePuller;
use super::render::{self, AllowedReferences, Renderer};
use super::{go, log};
use mainstay_catalog::{CatalogFormat, Rendition, WriteError};
use mainstay_image::registry::Security;
use std::fs::{self, File};
use std::io::{ErrorKind, Write as _};

/// The command.
pub(super) fn command() -> Command {
    Command {
        long: "Writes the catalog in a folder or an image to another folder, as one file for each package:\n\
               <outputDir>/<package>/catalog.json. Blobs without a package go into <outputDir>/catalog.json.\n\n\
               The output folder must be empty or missing. JSON files have one object after the other.",
        arguments: Arguments::Exactly(2),
        flags: vec![
            render::migrate_level(),
            Flag::text("output", Some('o'), "output format (json|yaml)").with_default("json"),
        ],
        action: Some(Action::Async(|call| Box::pin(run(call)))),
        ..Command::new(
            "migrate <indexRef> <outputDir>",
            "Write a catalog as one file for each package",
        )
    }
}

async fn run(call: &mut Call<'_, '_>) -> Result<(), Failure> {
    let format = render::format(call.flags.text("output")).map_err(Failure::log)?;
    let level = render::level(call.flags.text("migrate-level")).map_err(Failure::log)?;
    let (reference, folder) = (call.argument(0).to_owned(), call.argument(1).to_owned());
    let quoted = go::quote(&reference);
    log::info(call.io, &format!("rendering index {quoted} as file-based catalog"));
    check_empty(call.io, &folder).map_err(Failure::fatal)?;
    // Upstream ignores the registry flags here.
    let images = ImagePuller::containers(Security::Tls);
    let renderer = Renderer { template: None, level, allowed: AllowedReferences::CATALOGS, images };
    let found = renderer
        .render(call.io, &reference)
        .await
        .map_err(|error| Failure::Fatal(format!("render catalog image: {error}")))?;
    write_whole(call.io, &found, &folder, format).map_err(Failure::fatal)?;
    log::info(call.io, &format!("wrote rendered file-based catalog to {}\n", go::quote(&folder)));
    Ok(())
}

/// A catalog cannot be written to a folder.
#[derive(Debug, thiserror::Error)]
enum FolderError {
    /// The folder is not empty.
    #[error("output dir {} must be empty", go::quote(folder))]
    NotEmpty {
        /// The folder.
        folder: String,
    },
    /// The name of a package cannot be the name of a folder.
    #[error("invalid package name {}: must be a single local path element", go::quote(package))]
    PackageName {
        /// The name.
        package: String,
    },
    /// The documents cannot be encoded.
    #[error("write to buffer for {}: {source}", go::quote(path))]
    Documents {
        /// The file.
        path: String,
        /// The error.
        source: WriteError,
    },
    /// The file of a package cannot be written.
    #[error("write file {}: {source}", go::quote(path))]
    File {
        /// The file.
        path: String,
        /// The error.
        source: PathError,
    },
    /// An operation on a folder failed.
    #[error(transparent)]
    Path(#[from] PathError),
    /// A file has the name of a folder.
    #[error("mkdir {path}: not a directory")]
    NoFolder {
        /// The path of the file.
        path: String,
    },
}

/// Checks that the output folder is empty or missing.
fn check_empty(io: &CommandIo<'_>, folder: &str) -> Result<(), FolderError> {
    match fs::read_dir(io.resolve_path(folder)) {
        Ok(mut entries) => match entries.next() {
            None => Ok(()),
            Some(_) => Err(FolderError::NotEmpty { folder: folder.to_owned() }),
        },
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
        Err(error) => Err(PathError::of("open", folder)(error).into()),
    }
}

/// The file that marks an incomplete output folder.
const UNFINISHED: &str = ".unfinished";

/// Writes all files. If this ends too early (a full disk, a killed process), the output is not a valid
/// catalog: the marker file makes it invalid and gives the reason.
fn write_whole(
    io: &CommandIo<'_>,
    found: &Rendition,
    folder: &str,
    format: CatalogFormat,
) -> Result<(), FolderError> {
    create_folder(io, folder)?;
    let marker = go::join(folder, UNFINISHED);
    let why = "not all files of this catalog were written: empty the folder and migrate again\n";
    fs::write(io.resolve_path(&marker), why).map_err(PathError::of("open", &*marker))?;
    let written = write(io, found, folder, format);
    let left = fs::read_dir(io.resolve_path(folder)).map_or(0, Iterator::count);
    // An invalid package name is an error of the input: like upstream, the files before it stay.
    let has_folder_name = |package: &str| package.is_empty() || go::is_local(package);
    if written.is_ok()
        || left == 1
        || !found.parts().iter().all(|part| has_folder_name(part.package()))
    {
        fs::remove_file(io.resolve_path(&marker)).map_err(PathError::of("remove", &*marker))?;
    }
    written
}

fn write(
    io: &CommandIo<'_>,
    found: &Rendition,
    folder: &str,
    format: CatalogFormat,
) -> Result<(), FolderError> {
    let file = match format {
        CatalogFormat::Json => "catalog.json",
        CatalogFormat::Yaml => "catalog.yaml",
    };
    for part in found.parts() {
        let package = part.package();
        let folder = if package.is_empty() {
            folder.to_owned()
        } else {
            if !go::is_local(package) {
                return Err(FolderError::PackageName { package: package.to_owned() });
            }
            let folder = go::join(folder, package);
            create_folder(io, &folder)?;
            folder
        };
        let path = go::join(&folder, file);
        let mut text = Vec::new();
        part.write(format, &mut text)
            .map_err(|source| FolderError::Documents { path: path.clone(), source })?;
        let failed = |source| FolderError::File { path: path.clone(), source };
        let created = File::create(io.resolve_path(&path)).map_err(PathError::of("open", &*path));
        let written = created.map_err(failed)?.write_all(&text);
        written.map_err(PathError::of("write", &*path)).map_err(failed)?;
    }
    Ok(())
}

/// Creates a folder with its parents.
fn create_folder(io: &CommandIo<'_>, folder: &str) -> Result<(), FolderError> {
    let path = io.resolve_path(folder);
    let Err(error) = fs::create_dir_all(&path) else { return Ok(()) };
    // The error names the first part of the path that is a file.
    let mut prefix = String::new();
    for part in folder.split_inclusive('/') {
        prefix.push_str(part);
        if fs::metadata(io.resolve_path(&prefix)).is_ok_and(|found| !found.is_dir()) {
            let path = prefix.trim_end_matches('/').to_owned();
            return Err(FolderError::NoFolder { path });
        }
        if fs::metadata(io.resolve_path(&prefix)).is_err() {
            break;
        }
    }
    Err(PathError::of("mkdir", prefix.trim_end_matches('/'))(error).into())
}
