//! `opm render`: prints catalogs and bundles as one stream of blobs.

use super::call::{Call, CommandIo, Failure};
use super::command::{Action, Arguments, Command};
use super::flags::Flag;
use super::pull::{ContentError, ImageContent, ImagePuller};
use super::reference::{self, ReferenceError, ReferenceKind};
use super::{database, go};
use mainstay_bundle::{Bundle, BundleError, BundleImage, ImageTemplate};
use mainstay_catalog::template::ImageBundle;
use mainstay_catalog::{
    CatalogDocuments, CatalogFormat, FolderSource, KeptContent, LoadError, LoadOptions,
    MigrateError, MigrationLevel, Rendition, UnknownMigrationLevel, WriteError,
};
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
        long: "Prints the blobs of catalogs and bundles in one stream.\n\n\
               An argument is a folder with a file-based catalog, a folder of a bundle, with manifests and\n\
               metadata, a SQLite database of an index, or the image of any of these in a registry.\n\n\
               The folder of a bundle does not name its image. --alpha-image-ref-template builds the reference\n\
               from {{.Package}}, {{.Name}} and {{.Version}}.",
        arguments: Arguments::AtLeast(1),
        flags: vec![
            if alpha { template } else { template.hidden() },
            Flag::switch("migrate", "migrate the blobs to the newest form"),
            migrate_level(),
            Flag::text("output", Some('o'), "output format (json|yaml)").with_default("json"),
        ],
        exclusive: vec![&["migrate", "migrate-level"]],
        action: Some(Action::Async(|call| Box::pin(run(call)))),
        ..Command::new(
            "render [catalog-image | catalog-directory | bundle-image | bundle-directory | database-file]...",
            "Print the blobs of catalogs and bundles",
        )
    }
}

/// The flag of the migration level.
pub(super) fn migrate_level() -> Flag {
    let mut text =
        "the last migration to run, after those before it (none when not given):".to_owned();
    for level in MigrationLevel::ALL {
        let what = match level {
            MigrationLevel::None => "leaves the blobs as they are",
            MigrationLevel::CsvMetadata => "olm.bundle.object becomes olm.csv.metadata",
        };
        let _ = write!(text, "\n  {}: {what}", level.name());
    }
    Flag { text: text.into(), ..Flag::text("migrate-level", None, "") }
}

async fn run(call: &mut Call<'_, '_>) -> Result<(), Failure> {
    let format = format(call.flags.text("output")).map_err(Failure::log)?;
    let access = reference::registry_access(call).map_err(Failure::log)?;
    let template = match call.flags.text("alpha-image-ref-template") {
        "" => None,
        text => Some(
            ImageTemplate::parse(text)
                .map_err(|why| Failure::Log(format!("invalid image reference template: {why}")))?,
        ),
    };
    let level = if call.flags.is_on("migrate") {
        MigrationLevel::LAST
    } else {
        level(call.flags.text("migrate-level")).map_err(Failure::log)?
    };
    let images = ImagePuller::containers(access.containers());
    let renderer =
        Renderer { template: template.as_ref(), level, allowed: AllowedReferences::ALL, images };
    let mut all = Rendition::default();
    for reference in &call.arguments {
        all.append(renderer.render(call.io, reference).await.map_err(Failure::log)?);
    }
    let mut out = BufWriter::with_capacity(1 << 16, &mut *call.io.stdout);
    match all.write(format, &mut out).and_then(|()| Ok(out.flush()?)) {
        // An output error means that the reader is gone.
        Ok(()) | Err(WriteError::Io(_)) => Ok(()),
        Err(error) => {
            drop(out);
            Err(Failure::log(error))
        }
    }
}

/// Parses the name of an output format.
///
/// # Errors
/// If it is unknown.
pub(super) fn format(name: &str) -> Result<CatalogFormat, UnknownOutput> {
    match name {
        "json" => Ok(CatalogFormat::Json),
        "yaml" => Ok(CatalogFormat::Yaml),
        other => Err(UnknownOutput { output: other.to_owned() }),
    }
}

/// Parses the name of a migration level; empty is the level none.
///
/// # Errors
/// If it is unknown.
pub(super) fn level(name: &str) -> Result<MigrationLevel, UnknownMigrationLevel> {
    if name.is_empty() { Ok(MigrationLevel::None) } else { MigrationLevel::parse(name) }
}

/// The output format is unknown.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("invalid --output value {}, expected (json|yaml)", go::quote(output))]
pub(super) struct UnknownOutput {
    /// The name.
    pub(super) output: String,
}

/// A reference cannot be rendered.
#[derive(Debug, thiserror::Error)]
pub(super) enum RenderError {
    /// The reference leads to no renderable content.
    #[error("render reference {}: {reason}", go::quote(reference))]
    Reference {
        /// The reference.
        reference: String,
        /// The reason.
        reason: Box<ReferenceProblem>,
    },
    /// A document of the catalog cannot be migrated.
    #[error("migrate: {0}")]
    Migrate(MigrateError),
    /// The bundle cannot be migrated.
    #[error("migrate: {}", .0.upstream())]
    MigrateBundle(BundleError),
    /// The reference leads to a catalog instead of a bundle.
    #[error("{} is no bundle", go::quote(reference))]
    NoBundle {
        /// The reference.
        reference: String,
    },
}

impl RenderError {
    fn of(reference: &str, reason: ReferenceProblem) -> Self {
        Self::Reference { reference: reference.to_owned(), reason: Box::new(reason) }
    }
}

/// Why a reference leads to no renderable content.
#[derive(Debug, thiserror::Error)]
pub(super) enum ReferenceProblem {
    /// The file is unreadable or unsupported.
    #[error(transparent)]
    Find(#[from] ReferenceError),
    /// The image cannot be pulled, or has no known content.
    #[error(transparent)]
    Content(#[from] ContentError),
    /// The command does not accept this kind of reference.
    #[error("cannot render {0}: not allowed")]
    NotAllowed(DisallowedReference),
    /// The image of a bundle lacks its folders.
    #[error("open .: no such file or directory")]
    NoBundleFolders,
    /// The image of a catalog lacks its folder.
    #[error("stat .: no such file or directory")]
    NoCatalogFolder,
    /// The database is invalid.
    #[error(transparent)]
    Database(#[from] database::ReadError),
    /// A document of the database cannot be migrated.
    #[error("migrate: {0}")]
    MigrateDatabase(MigrateError),
    /// The catalog is invalid.
    #[error("{message}")]
    Catalog {
        /// Upstream's text, with paths as they were typed.
        message: String,
        /// The error.
        source: LoadError,
    },
    /// The bundle is invalid.
    #[error("{message}")]
    Bundle {
        /// Upstream's text, with paths as they were typed.
        message: String,
        /// The error.
        source: BundleError,
    },
}

/// A kind of reference that a command does not accept.
#[derive(Debug, thiserror::Error)]
pub(super) enum DisallowedReference {
    /// The folder of a bundle.
    #[error("bundle directory {}", go::quote(reference))]
    BundleFolder {
        /// Its path.
        reference: String,
    },
    /// The folder of a catalog.
    #[error("declarative config directory")]
    CatalogFolder,
    /// A database.
    #[error("sqlite file")]
    DatabaseFile,
    /// The image of a bundle.
    #[error("bundle image")]
    BundleImage,
    /// The image of a catalog.
    #[error("declarative config image")]
    CatalogImage,
    /// The image of a database.
    #[error("sqlite image")]
    DatabaseImage,
}

/// The kinds of references that a command accepts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct AllowedReferences {
    /// Folders and images of catalogs.
    pub(super) catalogs: bool,
    /// Folders of bundles.
    pub(super) bundle_folders: bool,
    /// Images of bundles.
    pub(super) bundle_images: bool,
}

impl AllowedReferences {
    /// All kinds.
    pub(super) const ALL: Self = Self { catalogs: true, bundle_folders: true, bundle_images: true };
    /// Images of bundles only.
    pub(super) const BUNDLE_IMAGES: Self =
        Self { catalogs: false, bundle_folders: false, bundle_images: true };
    /// Catalogs only.
    pub(super) const CATALOGS: Self =
        Self { catalogs: true, bundle_folders: false, bundle_images: false };
}

/// Renders references.
pub(super) struct Renderer<'t> {
    /// The template for the image references of bundle folders.
    pub(super) template: Option<&'t ImageTemplate>,
    /// The migration level.
    pub(super) level: MigrationLevel,
    /// The accepted kinds of references.
    pub(super) allowed: AllowedReferences,
    /// Pulls images.
    pub(super) images: ImagePuller,
}

/// Replaces the folder by the typed path in an error message.
type WithTypedPath<'s> = &'s dyn Fn(&str) -> String;

/// The rendered content of a reference.
enum RenderedReference {
    Catalog(Rendition),
    Bundle(Box<ImageBundle>),
}

impl Renderer<'_> {
    /// Renders a reference to a folder or an image.
    ///
    /// # Errors
    /// If it cannot be rendered.
    pub(super) async fn render(
        &self,
        io: &mut CommandIo<'_>,
        reference: &str,
    ) -> Result<Rendition, RenderError> {
        Ok(match self.find(io, reference).await? {
            RenderedReference::Catalog(all) => all,
            RenderedReference::Bundle(bundled) => {
                let mut all = Rendition::default();
                all.add(&bundled.bundle);
                all
            }
        })
    }

    /// Renders a reference to a bundle.
    ///
    /// # Errors
    /// If it is not a bundle or cannot be rendered.
    pub(super) async fn bundle_of(
        &self,
        io: &mut CommandIo<'_>,
        reference: &str,
    ) -> Result<ImageBundle, RenderError> {
        match self.find(io, reference).await? {
            RenderedReference::Bundle(bundled) => Ok(*bundled),
            RenderedReference::Catalog(_) => {
                Err(RenderError::NoBundle { reference: reference.to_owned() })
            }
        }
    }

    async fn find(
        &self,
        io: &mut CommandIo<'_>,
        reference: &str,
    ) -> Result<RenderedReference, RenderError> {
        let failed = |reason| RenderError::of(reference, reason);
        let refuse = |what| Err(failed(ReferenceProblem::NotAllowed(what)));
        let allowed = self.allowed;
        let typed = |message: &str| io.with_typed_path(message, reference);
        match reference::find(io, reference).map_err(|error| failed(error.into()))? {
            ReferenceKind::Bundle if !allowed.bundle_folders => {
                return refuse(DisallowedReference::BundleFolder {
                    reference: reference.to_owned(),
                });
            }
            ReferenceKind::Bundle => {
                let image = self.template.map_or(BundleImage::None, BundleImage::Template);
                return self.bundle(&io.resolve_path(reference), image, reference, &typed);
            }
            ReferenceKind::Catalog if !allowed.catalogs => {
                return refuse(DisallowedReference::CatalogFolder);
            }
            ReferenceKind::Catalog => {
                return self.catalog(&io.resolve_path(reference), reference, &typed);
            }
            ReferenceKind::Database if !allowed.catalogs => {
                return refuse(DisallowedReference::DatabaseFile);
            }
            ReferenceKind::Database => {
                let path = io.resolve_path(reference);
                return self.database(io, &path).map_err(failed);
            }
            ReferenceKind::Image => {}
        }
        let content = self.images.content(io, reference).await;
        match content.map_err(|error| failed(error.into()))? {
            ImageContent::Bundle(_) if !allowed.bundle_images => {
                refuse(DisallowedReference::BundleImage)
            }
            ImageContent::Bundle(unpacked) => {
                let inside = |message: &str| unpacked.as_in_image(message);
                if ["manifests", "metadata"].iter().any(|name| !unpacked.path.join(name).is_dir()) {
                    return Err(failed(ReferenceProblem::NoBundleFolders));
                }
                self.bundle(&unpacked.path, BundleImage::Reference(reference), reference, &inside)
            }
            ImageContent::Catalog(_) if !allowed.catalogs => {
                refuse(DisallowedReference::CatalogImage)
            }
            ImageContent::Catalog(unpacked) => {
                let inside = |message: &str| unpacked.as_in_image(message);
                if !unpacked.path.exists() {
                    return Err(failed(ReferenceProblem::NoCatalogFolder));
                }
                self.catalog(&unpacked.path, reference, &inside)
            }
            ImageContent::Database(_) if !allowed.catalogs => {
                refuse(DisallowedReference::DatabaseImage)
            }
            ImageContent::Database(unpacked) => self.database(io, &unpacked.path).map_err(failed),
        }
    }

    fn database(
        &self,
        io: &mut CommandIo<'_>,
        path: &Path,
    ) -> Result<RenderedReference, ReferenceProblem> {
        let mut found = Rendition::of(&database::read(io, path)?);
        found.migrate(self.level).map_err(ReferenceProblem::MigrateDatabase)?;
        Ok(RenderedReference::Catalog(found))
    }

    fn catalog(
        &self,
        folder: &Path,
        reference: &str,
        with_typed_path: WithTypedPath<'_>,
    ) -> Result<RenderedReference, RenderError> {
        let options = LoadOptions { keep: KeptContent::Light, ..LoadOptions::default() };
        let declared =
            CatalogDocuments::read(&FolderSource::new(folder), &options).map_err(|source| {
                let message = with_typed_path(&source.upstream());
                RenderError::of(reference, ReferenceProblem::Catalog { message, source })
            })?;
        let mut found = Rendition::of(&declared);
        found.migrate(self.level).map_err(RenderError::Migrate)?;
        Ok(RenderedReference::Catalog(found))
    }

    fn bundle(
        &self,
        folder: &Path,
        image: BundleImage<'_>,
        reference: &str,
        with_typed_path: WithTypedPath<'_>,
    ) -> Result<RenderedReference, RenderError> {
        let failed = |source: BundleError| {
            let message = with_typed_path(source.upstream());
            RenderError::of(reference, ReferenceProblem::Bundle { message, source })
        };
        let bundle = Bundle::read(folder).map_err(failed)?;
        let mut declared = bundle.declare(image, reference).map_err(failed)?;
        let csv = bundle.csv().manifest().value().clone();
        if self.level >= MigrationLevel::CsvMetadata {
            bundle.migrate(&mut declared).map_err(RenderError::MigrateBundle)?;
        }
        Ok(RenderedReference::Bundle(Box::new(ImageBundle { bundle: declared, csv })))
    }
}
