//! `opm migrate`: a catalog as a folder with one file for each package.

use super::call::{Call, End, Io};
use super::command::{Arguments, Command};
use super::flags::Flag;
use super::render::{self, Wanted};
use super::{go, voice};
use mainstay_catalog::{Format, Rendition};
use std::fs;
use std::io::ErrorKind;

/// The command.
pub(super) fn command() -> Command {
    Command {
        long: "Writes the catalog in a folder to another folder, as one file for each package:\n\
               <outputDir>/<package>/catalog.json. What belongs to no package goes into <outputDir>/catalog.json.\n\n\
               The output folder must be empty, or not there yet. JSON files hold one object after the other.",
        arguments: Arguments::Exactly(2),
        flags: vec![
            render::migrate_level(),
            Flag::text("output", Some('o'), "output format (json|yaml)").or("json"),
        ],
        action: Some(run),
        ..Command::new(
            "migrate <indexRef> <outputDir>",
            "Write a catalog as one file for each package",
        )
    }
}

fn run(call: &mut Call<'_, '_>) -> Result<(), End> {
    let format = render::format(call.flags.text("output")).map_err(End::Log)?;
    let level = render::level(call.flags.text("migrate-level")).map_err(End::Log)?;
    let (reference, folder) = (call.argument(0).to_owned(), call.argument(1).to_owned());
    let quoted = go::quote(&reference);
    voice::info(call.io, &format!("rendering index {quoted} as file-based catalog"));
    check_empty(call.io, &folder).map_err(End::Fatal)?;
    let wanted = Wanted { template: None, level, bundles: false };
    let found = wanted
        .render(call.io, &reference)
        .map_err(|why| End::Fatal(format!("render catalog image: {why}")))?;
    write(call.io, &found, &folder, format).map_err(End::Fatal)?;
    voice::info(call.io, &format!("wrote rendered file-based catalog to {}\n", go::quote(&folder)));
    Ok(())
}

/// The output folder may hold nothing yet.
fn check_empty(io: &Io<'_>, folder: &str) -> Result<(), String> {
    match fs::read_dir(io.at(folder)) {
        Ok(mut entries) => match entries.next() {
            None => Ok(()),
            Some(_) => Err(format!("output dir {} must be empty", go::quote(folder))),
        },
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
        Err(error) => Err(format!("open {folder}: {}", go::reason(&error))),
    }
}

fn write(io: &Io<'_>, found: &Rendition, folder: &str, format: Format) -> Result<(), String> {
    make(io, folder)?;
    let file = match format {
        Format::Json => "catalog.json",
        Format::Yaml => "catalog.yaml",
    };
    for part in found.parts() {
        let package = part.package();
        let folder = if package.is_empty() {
            folder.to_owned()
        } else {
            if !go::is_local(package) {
                let package = go::quote(package);
                return Err(format!(
                    "invalid package name {package}: must be a single local path element"
                ));
            }
            let folder = go::join(folder, package);
            make(io, &folder)?;
            folder
        };
        let path = go::join(&folder, file);
        let mut text = Vec::new();
        part.write(format, &mut text)
            .map_err(|error| format!("write to buffer for {}: {error}", go::quote(&path)))?;
        fs::write(io.at(&path), text).map_err(|error| {
            let why = go::reason(&error);
            format!("write file {}: open {path}: {why}", go::quote(&path))
        })?;
    }
    Ok(())
}

/// Makes a folder and those above it.
fn make(io: &Io<'_>, folder: &str) -> Result<(), String> {
    let path = io.at(folder);
    let Err(error) = fs::create_dir_all(&path) else { return Ok(()) };
    // The first part that is in the way is named.
    let mut named = String::new();
    for part in folder.split_inclusive('/') {
        named.push_str(part);
        if fs::metadata(io.at(&named)).is_ok_and(|found| !found.is_dir()) {
            return Err(format!("mkdir {}: not a directory", named.trim_end_matches('/')));
        }
        if fs::metadata(io.at(&named)).is_err() {
            break;
        }
    }
    Err(format!("mkdir {}: {}", named.trim_end_matches('/'), go::reason(&error)))
}
