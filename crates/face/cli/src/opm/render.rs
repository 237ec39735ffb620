//! `opm render`: catalogs and bundles as one stream of blobs.

use super::call::{Call, End, Io};
use super::command::{Arguments, Command};
use super::flags::Flag;
use super::reference::{self, Kind};
use super::{engine, go};
use mainstay_bundle::{Bundle, Image, ImageTemplate};
use mainstay_catalog::{Declared, Folder, Format, Keep, Level, LoadOptions, Rendition, WriteError};
use std::fmt::Write;
use std::io::{BufWriter, Write as _};

/// The command.
pub(super) fn command(alpha: bool) -> Command {
    let template = Flag::text(
        "alpha-image-ref-template",
        None,
        "template of the image references of bundle folders: {{.Package}}, {{.Name}}, {{.Version}}",
    );
    Command {
        long: "Prints the blobs of catalogs and bundles, all in one stream.\n\n\
               An argument is a folder with a file-based catalog, or a folder of a bundle, with manifests and\n\
               metadata. Images are not pulled, and databases are not read.\n\n\
               The image of a bundle is not known from its folder. --alpha-image-ref-template makes references\n\
               from {{.Package}}, {{.Name}} and {{.Version}}.",
        arguments: Arguments::AtLeast(1),
        flags: vec![
            if alpha { template } else { template.hide() },
            Flag::switch("migrate", "bring the blobs to the newest form"),
            migrate_level(),
            Flag::text("output", Some('o'), "output format (json|yaml)").or("json"),
        ],
        exclusive: vec![&["migrate", "migrate-level"]],
        action: Some(run),
        ..Command::new(
            "render [catalog-directory | bundle-directory]...",
            "Print the blobs of catalogs and bundles",
        )
    }
}

/// The flag that says how far to migrate.
pub(super) fn migrate_level() -> Flag {
    let mut text =
        "the last migration to run, after those before it (none when not given):".to_owned();
    for level in Level::ALL {
        let what = match level {
            Level::None => "leaves the blobs as they are",
            Level::CsvMetadata => "olm.bundle.object becomes olm.csv.metadata",
        };
        let _ = write!(text, "\n  {}: {what}", level.name());
    }
    Flag { text: text.into(), ..Flag::text("migrate-level", None, "") }
}

fn run(call: &mut Call<'_, '_>) -> Result<(), End> {
    let format = format(call.flags.text("output")).map_err(End::Log)?;
    reference::check_registry_flags(call).map_err(End::Log)?;
    let template = match call.flags.text("alpha-image-ref-template") {
        "" => None,
        text => Some(
            ImageTemplate::parse(text)
                .map_err(|why| End::Log(format!("invalid image reference template: {why}")))?,
        ),
    };
    let level = if call.flags.is_on("migrate") {
        Level::LAST
    } else {
        level(call.flags.text("migrate-level")).map_err(End::Log)?
    };
    let mut all = Rendition::default();
    for reference in &call.arguments {
        let wanted = Wanted { template: template.as_ref(), level, bundles: true };
        all.append(wanted.render(call.io, reference).map_err(End::Log)?);
    }
    let mut out = BufWriter::with_capacity(1 << 16, &mut *call.io.stdout);
    match all.write(format, &mut out).and_then(|()| Ok(out.flush()?)) {
        // Who reads no further has gone away.
        Ok(()) | Err(WriteError::Io(_)) => Ok(()),
        Err(error) => {
            drop(out);
            Err(End::Log(error.to_string()))
        }
    }
}

/// The format of that name.
///
/// # Errors
/// If there is none.
pub(super) fn format(name: &str) -> Result<Format, String> {
    match name {
        "json" => Ok(Format::Json),
        "yaml" => Ok(Format::Yaml),
        other => Err(engine::unknown_output(other)),
    }
}

/// The migration level of that name; none is the level none.
///
/// # Errors
/// If it is unknown.
pub(super) fn level(name: &str) -> Result<Level, String> {
    if name.is_empty() { Ok(Level::None) } else { Level::named(name) }
}

/// What is made of a reference.
pub(super) struct Wanted<'t> {
    /// How the images of bundle folders are called.
    pub(super) template: Option<&'t ImageTemplate>,
    /// How far to migrate.
    pub(super) level: Level,
    /// Whether it may be a bundle.
    pub(super) bundles: bool,
}

impl Wanted<'_> {
    /// The blobs of a reference.
    ///
    /// # Errors
    /// Why there are none.
    pub(super) fn render(&self, io: &Io<'_>, reference: &str) -> Result<Rendition, String> {
        let quoted = go::quote(reference);
        let failed = |why: String| format!("render reference {quoted}: {why}");
        let mut found = match reference::find(io, reference).map_err(failed)? {
            Kind::Bundle if !self.bundles => {
                return Err(failed(format!(
                    "cannot render bundle directory {quoted}: not allowed"
                )));
            }
            Kind::Bundle => return self.bundle(io, reference, &failed),
            Kind::Catalog => {
                let options = LoadOptions { keep: Keep::Light, ..LoadOptions::default() };
                let declared = Declared::read(&Folder::new(io.at(reference)), &options)
                    .map_err(|error| failed(io.as_typed(&error.upstream(), reference)))?;
                Rendition::of(&declared)
            }
        };
        found.migrate(self.level).map_err(|error| format!("migrate: {error}"))?;
        Ok(found)
    }

    fn bundle(
        &self,
        io: &Io<'_>,
        reference: &str,
        failed: &dyn Fn(String) -> String,
    ) -> Result<Rendition, String> {
        let said =
            |error: mainstay_bundle::BundleError| failed(io.as_typed(error.upstream(), reference));
        let bundle = Bundle::read(io.at(reference)).map_err(said)?;
        let image = self.template.map_or(Image::None, Image::Template);
        let mut declared = bundle.declare(image, reference).map_err(said)?;
        if self.level >= Level::CsvMetadata {
            bundle
                .migrate(&mut declared)
                .map_err(|error| format!("migrate: {}", error.upstream()))?;
        }
        let mut found = Rendition::default();
        found.add(&declared);
        Ok(found)
    }
}
