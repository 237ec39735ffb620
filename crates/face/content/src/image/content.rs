//! Images of operator content: the same folder gives the same digest, on any day and machine.
//!
//! | Content | Below | Labels | Platforms |
//! |---|---|---|---|
//! | bundle | `/manifests`, `/metadata`, `/tests/…` if its annotations name it | all annotations | one image, `linux/amd64`, as published bundles are |
//! | catalog in a database | `/database/index.db` | its path | as for a catalog |
//! | catalog | `/configs`: the files that a catalog load reads | its path | an index of the architectures that operators are published for |
//!
//! The labels of a bundle are `classic.md` BND-07 and BND-08, that of a catalog FBC-29.

use super::failure;
use mainstay_bundle::{Bundle, BundleFolder, FileKind, FileTree};
use mainstay_cause::{Cause, FileLocation};
use mainstay_command::exit::CommandFailure;
use mainstay_command::text::escape_controls;
use mainstay_gocompat::io_error_text;
use mainstay_image::{
    build::{self, LayerWriter},
    manifest::{Descriptor, ImageConfig},
    platform::Platform,
    store::ImageStore,
};
use std::{
    collections::BTreeMap,
    fs::File,
    io::Read,
    path::{Path, PathBuf},
};

/// The largest depth of nested folders in a bundle, and the largest number of files.
const MAX_DEPTH: usize = 16;
const MAX_FILES: usize = 10_000;
/// The largest size of a file, in bytes.
const MAX_FILE_BYTES: u64 = 4 << 30;

/// The image label with the path of the catalog's configs.
pub const CONFIGS_LABEL: &str = "operators.operatorframework.io.index.configs.v1";
/// The image label with the path of the catalog's database.
pub const DATABASE_LABEL: &str = "operators.operatorframework.io.index.database.v1";
/// The image label with the package of a bundle.
pub const BUNDLE_LABEL: &str = "operators.operatorframework.io.bundle.package.v1";
const CONFIGS: &str = "configs";
const DATABASE: &str = "database/index.db";
const BUNDLE_LABEL_PREFIX: &str = "operators.operatorframework.io.bundle.";
const TESTS_LABEL: &str = "operators.operatorframework.io.test.config.v1";

/// Options of an image build.
#[derive(Clone, Debug, Default)]
pub struct BuildOptions {
    /// Further labels. None may contradict the content's own labels.
    pub labels: BTreeMap<String, String>,
    /// The platforms of the images; empty takes those of the kind of content.
    pub platforms: Vec<Platform>,
}

/// A built image.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BuiltImage {
    /// The descriptor in the store: an image, or an index of several.
    pub image: Descriptor,
    /// Its labels.
    pub labels: BTreeMap<String, String>,
    /// The platforms that it has images for.
    pub platforms: Vec<Platform>,
}

/// Builds the image of a bundle folder in a store, without validating it.
///
/// # Errors
/// The folder has no readable bundle, or a file in it cannot be read.
pub fn bundle(
    store: &ImageStore,
    folder: &Path,
    shown: &str,
    options: &BuildOptions,
) -> Result<BuiltImage, CommandFailure> {
    let bundle = Bundle::read(folder).map_err(|error| {
        let problem = error.problem();
        let file = format!("{}/{}", shown.trim_end_matches('/'), problem.file);
        let cause = Cause::new(escape_controls(&problem.message)).at(FileLocation::file(file));
        CommandFailure::from(
            Cause::new("no image can be built of the bundle")
                .because(cause.remedy(problem.remedy.to_string())),
        )
    })?;
    let annotations = &bundle.annotations().all;
    let mut labels = BTreeMap::new();
    for (name, default) in
        [("mediatype", "registry+v1"), ("manifests", "manifests/"), ("metadata", "metadata/")]
    {
        labels.insert(format!("{BUNDLE_LABEL_PREFIX}{name}.v1"), default.to_owned());
    }
    labels.extend(annotations.clone());
    let labels = merge_labels(labels, options)?;
    let mut folders = vec!["manifests".to_owned(), "metadata".to_owned()];
    let tree = BundleFolder::new(folder);
    if let Some(tests) = annotations.get(TESTS_LABEL) {
        let tests = tests.trim_matches('/');
        let is_normal = |part: &str| !matches!(part, "" | "." | "..");
        if tests.split('/').all(is_normal) && folder.join(tests).is_dir() {
            folders.push(tests.to_owned());
        }
    }
    let mut files = BTreeMap::new();
    for subfolder in folders {
        collect_files(&tree, folder, &subfolder, 0, &mut files).map_err(|cause| {
            let cause = Cause::new("no image can be built of the bundle").because(cause);
            CommandFailure::from(cause)
        })?;
    }
    let platforms = if options.platforms.is_empty() {
        vec![Platform::linux("amd64")]
    } else {
        options.platforms.clone()
    };
    assemble(store, &files, labels, platforms)
}

/// Builds the image of a catalog folder in a store, from the files that a catalog load reads, without
/// those that `.indexignore` excludes. It does not validate the catalog.
///
/// # Errors
/// The folder or a file in it cannot be read.
pub fn catalog(
    store: &ImageStore,
    folder: &Path,
    shown: &str,
    options: &BuildOptions,
) -> Result<BuiltImage, CommandFailure> {
    let refused = |why: String| {
        let cause = Cause::new("no image can be built of the catalog");
        CommandFailure::from(
            cause.because(Cause::new(escape_controls(&why)).at(FileLocation::file(shown))),
        )
    };
    let catalog_files = mainstay_catalog::catalog_files(
        &mainstay_catalog::FolderSource::new(folder),
        &mainstay_catalog::LoadOptions::default(),
    )
    .map_err(|error| refused(error.to_string()))?;
    let mut files = BTreeMap::new();
    for file in catalog_files {
        if let Some((why, remedy)) = file.fault {
            let place =
                FileLocation::file(format!("{}/{}", shown.trim_end_matches('/'), file.path));
            let cause = Cause::new(escape_controls(&why)).at(place).remedy(remedy.to_string());
            return Err(Cause::new("no image can be built of the catalog").because(cause).into());
        }
        files.insert(format!("{CONFIGS}/{}", file.path), folder.join(&file.path));
    }
    if files.is_empty() {
        return Err(refused("the folder has no files".to_owned()));
    }
    let labels = BTreeMap::from([(CONFIGS_LABEL.to_owned(), format!("/{CONFIGS}"))]);
    catalog_image(store, &files, labels, options)
}

/// Builds the image of a catalog database in a store, without validating it.
///
/// # Errors
/// The file cannot be read.
pub fn database(
    store: &ImageStore,
    file: &Path,
    options: &BuildOptions,
) -> Result<BuiltImage, CommandFailure> {
    let files = BTreeMap::from([(DATABASE.to_owned(), file.to_owned())]);
    let labels = BTreeMap::from([(DATABASE_LABEL.to_owned(), format!("/{DATABASE}"))]);
    catalog_image(store, &files, labels, options)
}

/// Builds the image of a catalog: by default for all platforms that operators are published for.
fn catalog_image(
    store: &ImageStore,
    files: &BTreeMap<String, PathBuf>,
    labels: BTreeMap<String, String>,
    options: &BuildOptions,
) -> Result<BuiltImage, CommandFailure> {
    let labels = merge_labels(labels, options)?;
    let platforms = if options.platforms.is_empty() {
        ["amd64", "arm64", "ppc64le", "s390x"].map(Platform::linux).to_vec()
    } else {
        options.platforms.clone()
    };
    assemble(store, files, labels, platforms)
}

/// Merges the requested labels into those of the content.
fn merge_labels(
    mut labels: BTreeMap<String, String>,
    options: &BuildOptions,
) -> Result<BTreeMap<String, String>, CommandFailure> {
    for (key, value) in &options.labels {
        if let Some(value_of_folder) =
            labels.get(key).filter(|value_of_folder| *value_of_folder != value)
        {
            let what = format!(
                "the folder sets the label {} to {:?}",
                escape_controls(key),
                value_of_folder
            );
            let remedy = "change it in metadata/annotations.yaml, which clusters read";
            return Err(CommandFailure::usage(Cause::new(what).remedy(remedy)));
        }
        labels.insert(key.clone(), value.clone());
    }
    Ok(labels)
}

/// Collects the files below a folder of a bundle, by their names in the image.
fn collect_files(
    tree: &BundleFolder,
    root: &Path,
    subfolder: &str,
    depth: usize,
    files: &mut BTreeMap<String, PathBuf>,
) -> Result<(), Cause> {
    let at = |path: &str| FileLocation::file(root.join(path));
    if depth > MAX_DEPTH {
        return Err(
            Cause::new(format!("folders are nested more than {MAX_DEPTH} deep")).at(at(subfolder))
        );
    }
    let entries = tree
        .list(subfolder)
        .map_err(|error| Cause::new(io_error_text(&error)).at(at(subfolder)))?;
    for entry in entries {
        let path = format!("{subfolder}/{}", entry.name);
        match entry.kind {
            FileKind::Folder => collect_files(tree, root, &path, depth + 1, files)?,
            FileKind::File => {
                files.insert(path.clone(), root.join(&path));
            }
            FileKind::Outside => {
                let cause =
                    Cause::new("the link leads out of the bundle, or nowhere").at(at(&path));
                return Err(cause.remedy("replace the link with the file"));
            }
            FileKind::Other => {
                let cause = Cause::new("this is neither a file nor a folder").at(at(&path));
                return Err(cause.remedy("remove it"));
            }
        }
        if files.len() > MAX_FILES {
            return Err(
                Cause::new(format!("there are more than {MAX_FILES} files")).at(at(subfolder))
            );
        }
    }
    Ok(())
}

fn assemble(
    store: &ImageStore,
    files: &BTreeMap<String, PathBuf>,
    labels: BTreeMap<String, String>,
    platforms: Vec<Platform>,
) -> Result<BuiltImage, CommandFailure> {
    let what = "the image cannot be built";
    let refused = |error| failure::store(what, &error);
    let mut layer = LayerWriter::new(store).map_err(refused)?;
    for (name, path) in files {
        let unread =
            |why: String| CommandFailure::from(Cause::new(why).at(FileLocation::file(path)));
        let (file, size) = open(path).map_err(|error| unread(io_error_text(&error)))?;
        if size > MAX_FILE_BYTES {
            return Err(unread(format!("the file is longer than {MAX_FILE_BYTES} bytes")));
        }
        layer.add(name, 0o644, size, file).map_err(|error| failure::layer(what, &error))?;
    }
    let layers = [layer.finish().map_err(refused)?];
    let mut config = ImageConfig::default();
    config.config.labels.clone_from(&labels);
    let image = match platforms.as_slice() {
        [one] => build::image(store, one.clone(), config, &layers).map(|mut image| {
            // A single image has no platform, as it is in no index.
            image.platform = None;
            image
        }),
        several => build::for_platforms(store, several, &config, &layers),
    };
    Ok(BuiltImage { image: image.map_err(refused)?, labels, platforms })
}

fn open(path: &Path) -> std::io::Result<(impl Read + use<>, u64)> {
    let file = File::open(path)?;
    let about = file.metadata()?;
    if !about.is_file() {
        return Err(std::io::Error::other("this is not a file"));
    }
    Ok((file, about.len()))
}
