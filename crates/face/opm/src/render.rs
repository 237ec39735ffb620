//! `opm render`: catalogs and bundles as one stream of blobs.

use super::call::{Call, End, Io};
use super::command::{Action, Arguments, Command};
use super::flags::Flag;
use super::pull::{Content, Images};
use super::reference::{self, Kind};
use super::{database, engine, go};
use mainstay_bundle::{Bundle, Image, ImageTemplate};
use mainstay_catalog::template::Bundled;
use mainstay_catalog::{Declared, Folder, Format, Keep, Level, LoadOptions, Rendition, WriteError};
use std::fmt::Write;
use std::io::{BufWriter, Write as _};
use std::path::Path;

/// The command.
pub(super) fn command(alpha: bool) -> Command {
    let template = Flag::text(
        "alpha-image-ref-template",
        None,
        "template of the image references of bundle folders: {{.Package}}, {{.Name}}, {{.Version}}",
    );
    Command {
        long: "Prints the blobs of catalogs and bundles, all in one stream.\n\n\
               An argument is a folder with a file-based catalog, a folder of a bundle, with manifests and\n\
               metadata, a SQLite database of an index, or the image of any of these in a registry.\n\n\
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
        action: Some(Action::Async(|call| Box::pin(run(call)))),
        ..Command::new(
            "render [catalog-image | catalog-directory | bundle-image | bundle-directory | database-file]...",
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

async fn run(call: &mut Call<'_, '_>) -> Result<(), End> {
    let format = format(call.flags.text("output")).map_err(End::Log)?;
    let reach = reference::security(call).map_err(End::Log)?;
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
    let images = Images::containers(reach.containers());
    let wanted = Wanted { template: template.as_ref(), level, allowed: Allowed::ALL, images };
    let mut all = Rendition::default();
    for reference in &call.arguments {
        all.append(wanted.render(call.io, reference).await.map_err(End::Log)?);
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
    if name.is_empty() {
        Ok(Level::None)
    } else {
        Level::named(name).map_err(|error| error.to_string())
    }
}

/// Which kinds of references are taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Allowed {
    /// Folders and images of catalogs.
    pub(super) catalogs: bool,
    /// Folders of bundles.
    pub(super) bundle_folders: bool,
    /// Images of bundles.
    pub(super) bundle_images: bool,
}

impl Allowed {
    /// All.
    pub(super) const ALL: Self = Self { catalogs: true, bundle_folders: true, bundle_images: true };
    /// Images of bundles only.
    pub(super) const BUNDLE_IMAGES: Self =
        Self { catalogs: false, bundle_folders: false, bundle_images: true };
    /// Catalogs only.
    pub(super) const CATALOGS: Self =
        Self { catalogs: true, bundle_folders: false, bundle_images: false };
}

/// What is made of a reference.
pub(super) struct Wanted<'t> {
    /// How the images of bundle folders are called.
    pub(super) template: Option<&'t ImageTemplate>,
    /// How far to migrate.
    pub(super) level: Level,
    /// What it may be.
    pub(super) allowed: Allowed,
    /// What is not here is pulled by these.
    pub(super) images: Images,
}

/// Makes of what is wrong with content what is said of the reference to it.
type Say<'s> = &'s dyn Fn(&str) -> String;

/// What a reference leads to.
enum Found {
    Catalog(Rendition),
    Bundle(Box<Bundled>),
}

impl Wanted<'_> {
    /// The blobs of a reference: of a folder, or of an image.
    ///
    /// # Errors
    /// Why there are none.
    pub(super) async fn render(
        &self,
        io: &mut Io<'_>,
        reference: &str,
    ) -> Result<Rendition, String> {
        Ok(match self.find(io, reference).await? {
            Found::Catalog(all) => all,
            Found::Bundle(bundled) => {
                let mut all = Rendition::default();
                all.add(&bundled.bundle);
                all
            }
        })
    }

    /// The bundle of a reference.
    ///
    /// # Errors
    /// Why there is none.
    pub(super) async fn bundle_of(
        &self,
        io: &mut Io<'_>,
        reference: &str,
    ) -> Result<Bundled, String> {
        match self.find(io, reference).await? {
            Found::Bundle(bundled) => Ok(*bundled),
            Found::Catalog(_) => Err(format!("{} is no bundle", go::quote(reference))),
        }
    }

    async fn find(&self, io: &mut Io<'_>, reference: &str) -> Result<Found, String> {
        let quoted = go::quote(reference);
        let failed = |why: String| format!("render reference {quoted}: {why}");
        let refuse = |what: &str| Err(failed(format!("cannot render {what}: not allowed")));
        let allowed = self.allowed;
        let typed = |message: &str| failed(io.as_typed(message, reference));
        match reference::find(io, reference).map_err(failed)? {
            Kind::Bundle if !allowed.bundle_folders => {
                return refuse(&format!("bundle directory {quoted}"));
            }
            Kind::Bundle => {
                let image = self.template.map_or(Image::None, Image::Template);
                return self.bundle(&io.at(reference), image, reference, &typed);
            }
            Kind::Catalog if !allowed.catalogs => return refuse("declarative config directory"),
            Kind::Catalog => return self.catalog(&io.at(reference), &typed),
            Kind::Database if !allowed.catalogs => return refuse("sqlite file"),
            Kind::Database => {
                let path = io.at(reference);
                return self.database(io, &path).map_err(failed);
            }
            Kind::Image => {}
        }
        match self.images.content(io, reference).await.map_err(failed)? {
            Content::Bundle(_) if !allowed.bundle_images => refuse("bundle image"),
            Content::Bundle(unpacked) => {
                let inside = |message: &str| failed(unpacked.as_in_image(message));
                if ["manifests", "metadata"].iter().any(|name| !unpacked.path.join(name).is_dir()) {
                    return Err(inside("open .: no such file or directory"));
                }
                self.bundle(&unpacked.path, Image::Reference(reference), reference, &inside)
            }
            Content::Catalog(_) if !allowed.catalogs => refuse("declarative config image"),
            Content::Catalog(unpacked) => {
                let inside = |message: &str| failed(unpacked.as_in_image(message));
                if !unpacked.path.exists() {
                    return Err(inside("stat .: no such file or directory"));
                }
                self.catalog(&unpacked.path, &inside)
            }
            Content::Database(_) if !allowed.catalogs => refuse("sqlite image"),
            Content::Database(unpacked) => self.database(io, &unpacked.path).map_err(failed),
        }
    }

    fn database(&self, io: &mut Io<'_>, path: &Path) -> Result<Found, String> {
        let mut found = Rendition::of(&database::read(io, path)?);
        found.migrate(self.level).map_err(|error| format!("migrate: {error}"))?;
        Ok(Found::Catalog(found))
    }

    fn catalog(&self, folder: &Path, say: Say<'_>) -> Result<Found, String> {
        let options = LoadOptions { keep: Keep::Light, ..LoadOptions::default() };
        let declared = Declared::read(&Folder::new(folder), &options)
            .map_err(|error| say(&error.upstream()))?;
        let mut found = Rendition::of(&declared);
        found.migrate(self.level).map_err(|error| format!("migrate: {error}"))?;
        Ok(Found::Catalog(found))
    }

    fn bundle(
        &self,
        folder: &Path,
        image: Image<'_>,
        reference: &str,
        say: Say<'_>,
    ) -> Result<Found, String> {
        let said = |error: mainstay_bundle::BundleError| say(error.upstream());
        let bundle = Bundle::read(folder).map_err(said)?;
        let mut declared = bundle.declare(image, reference).map_err(said)?;
        let csv = bundle.csv().manifest().value().clone();
        if self.level >= Level::CsvMetadata {
            bundle
                .migrate(&mut declared)
                .map_err(|error| format!("migrate: {}", error.upstream()))?;
        }
        Ok(Found::Bundle(Box::new(Bundled { bundle: declared, csv })))
    }
}
