//! Contents of images: the catalog, or the objects of a bundle.

use super::error::error_line;
use super::{CatalogPlace, ImageContentError, MissingIdentity, PulledImage, Puller};
use mainstay_bundle::render::{RegistryV1Bundle, RenderError};
use mainstay_bundle::{Bundle, BundleFolder, Limits};
use mainstay_catalog::{Catalog, LoadOptions};
use mainstay_image::unpack::{self, UnpackError};
use mainstay_object::Object;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// The labels of a bundle image for its two folders, each with the default folder.
const MANIFESTS_LABEL: (&str, &str) =
    ("operators.operatorframework.io.bundle.manifests.v1", "manifests");
const METADATA_LABEL: (&str, &str) =
    ("operators.operatorframework.io.bundle.metadata.v1", "metadata");

/// Why an image has no bundle that operator-controller of OLM v1 could install.
#[derive(Debug, thiserror::Error)]
pub enum RegistryV1Error {
    /// The layers cannot be unpacked.
    #[error(transparent)]
    Unpack(UnpackError),
    /// The bundle cannot be read.
    #[error(transparent)]
    Read(#[from] RenderError),
}

/// The folder of an unpacked image. Dropping this removes it.
pub(crate) struct UnpackedImage(PathBuf);

impl UnpackedImage {
    pub(crate) fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for UnpackedImage {
    fn drop(&mut self) {
        // Leftovers go with the work folder at the next start.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

#[expect(clippy::needless_pass_by_value, reason = "for map_err")]
fn unpack_error(error: UnpackError) -> ImageContentError {
    ImageContentError::Unpack(error_line(&error))
}

impl Puller {
    /// Loads the catalog of an image. Blocks, and uses much CPU. `folder` overrides the place that the
    /// image names.
    ///
    /// # Errors
    /// Why it is invalid, in one line.
    pub fn catalog(
        &self,
        image: &PulledImage,
        folder: Option<&str>,
    ) -> Result<Arc<Catalog>, ImageContentError> {
        self.catalog_at(image, &CatalogPlace::of(&image.config.config, folder)?)
    }

    /// Loads the catalog at a place in an image. Blocks, and uses much CPU.
    ///
    /// # Errors
    /// Why it is invalid, in one line.
    pub fn catalog_at(
        &self,
        image: &PulledImage,
        place: &CatalogPlace,
    ) -> Result<Arc<Catalog>, ImageContentError> {
        match place {
            CatalogPlace::Folder(folder) => self.load_folder(image, folder),
            CatalogPlace::Database(file) => self.load_database(image, file),
        }
    }

    fn load_folder(
        &self,
        image: &PulledImage,
        folder: &str,
    ) -> Result<Arc<Catalog>, ImageContentError> {
        let unpacked = self.unpack(image, vec![folder.to_owned()]).map_err(unpack_error)?;
        let place = unpacked.0.join(folder);
        if !place.is_dir() {
            let path = folder.to_owned();
            return Err(ImageContentError::Missing { what: "catalog", kind: "folder", path });
        }
        Catalog::load(&place, &LoadOptions::default()).map_err(|mut error| {
            for problem in &mut error.problems {
                problem.file = format!("/{folder}/{}", problem.file).into();
            }
            ImageContentError::ReadCatalog(error.headline())
        })
    }

    fn load_database(
        &self,
        image: &PulledImage,
        file: &str,
    ) -> Result<Arc<Catalog>, ImageContentError> {
        // A log beside the database that was not merged shows that the database is incomplete.
        let only = ["", "-wal", "-journal"].map(|end| format!("{file}{end}"));
        let unpacked = self.unpack(image, only.into()).map_err(unpack_error)?;
        let place = unpacked.0.join(file);
        if !place.is_file() {
            let path = file.to_owned();
            return Err(ImageContentError::Missing { what: "catalog", kind: "database", path });
        }
        mainstay_database::load(&place).map_err(|error| {
            let folder = format!("{}/", unpacked.0.display());
            ImageContentError::ReadCatalog(join_lines(&error_line(&error).replace(&folder, "/")))
        })
    }

    /// Reads the objects of the bundle in an image. Blocks.
    ///
    /// # Errors
    /// Why it is invalid, in one line.
    pub fn bundle(&self, image: &PulledImage) -> Result<Vec<Object>, ImageContentError> {
        let labels = &image.config.config.labels;
        let place = |(label, default_folder): (&str, &str)| {
            labels.get(label).map_or_else(|| default_folder.to_owned(), |folder| within(folder))
        };
        let (manifests, metadata) = (place(MANIFESTS_LABEL), place(METADATA_LABEL));
        let unpacked =
            self.unpack(image, vec![manifests.clone(), metadata.clone()]).map_err(unpack_error)?;
        for (folder, default_folder) in
            [(&manifests, MANIFESTS_LABEL.1), (&metadata, METADATA_LABEL.1)]
        {
            let (from, to) = (unpacked.0.join(folder), unpacked.0.join(default_folder));
            if !from.is_dir() {
                let path = folder.clone();
                return Err(ImageContentError::Missing { what: "bundle", kind: "folder", path });
            }
            if from != to {
                let moved = std::fs::rename(&from, &to);
                moved.map_err(|error| ImageContentError::Unpack(error_line(&error)))?;
            }
        }
        let bundle = Bundle::read(&unpacked.0).map_err(|error| {
            let problem = error.problem();
            let line = problem.line.map(|line| format!(":{line}")).unwrap_or_default();
            ImageContentError::ReadBundle {
                place: format!("/{}{line}", problem.file),
                reason: problem.message.clone(),
            }
        })?;
        let object = |manifest: &mainstay_bundle::Manifest| {
            let unreadable = |reason: String| ImageContentError::ReadBundle {
                place: format!("/{}", manifest.file()),
                reason,
            };
            let object = Object::from_value(manifest.value().clone());
            let object = object.map_err(|error| unreadable(error_line(&error)))?;
            check_identity(&object).map_err(|missing| unreadable(missing.to_string()))?;
            Ok(object)
        };
        bundle.manifests().iter().map(object).collect()
    }

    /// Reads the bundle in an image as operator-controller of OLM v1 does, whatever the labels of the
    /// image say. Blocks.
    ///
    /// # Errors
    /// If the layers cannot be unpacked, or they hold no bundle.
    pub fn registry_v1(&self, image: &PulledImage) -> Result<RegistryV1Bundle, RegistryV1Error> {
        let only = [MANIFESTS_LABEL.1, METADATA_LABEL.1].map(str::to_owned);
        let unpacked = self.unpack(image, only.into()).map_err(RegistryV1Error::Unpack)?;
        let folder = BundleFolder::new(unpacked.path());
        Ok(RegistryV1Bundle::read(&folder, &Limits::default())?)
    }

    /// Unpacks files and folders of an image, all of it if `only` names none. Blocks.
    pub(crate) fn unpack(
        &self,
        image: &PulledImage,
        only: Vec<String>,
    ) -> Result<UnpackedImage, UnpackError> {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let target = self.images.work.join(format!("unpacked-{number}"));
        let options = unpack::Options { only, ..unpack::Options::default() };
        let unpacked = UnpackedImage(target);
        unpack::image(&image.store, &image.manifest, &image.config, &unpacked.0, options)?;
        Ok(unpacked)
    }
}

/// Checks that an object of a bundle has `apiVersion`, `kind` and a name.
///
/// # Errors
/// The field that it lacks.
pub fn check_identity(object: &Object) -> Result<(), MissingIdentity> {
    let name = match object.name() {
        "" => object.str(&["metadata", "generateName"]).unwrap_or_default(),
        name => name,
    };
    let has = [
        ("apiVersion", object.str(&["apiVersion"]).unwrap_or_default()),
        ("kind", object.kind()),
        ("metadata.name", name),
    ];
    match has.iter().find(|(_, value)| value.is_empty()) {
        None => Ok(()),
        Some((field, _)) => {
            let (kind, name) = (object.kind().to_owned(), name.to_owned());
            Err(MissingIdentity { field, kind, name })
        }
    }
}

/// Joins the lines of an error tree to one line.
fn join_lines(text: &str) -> String {
    let mut joined = String::with_capacity(text.len());
    for line in text.lines() {
        let line = line.trim_start_matches([' ', '│', '├', '└', '─']).trim_end();
        joined.push_str(match joined.as_bytes().last() {
            None => "",
            Some(b':') => " ",
            Some(_) => "; ",
        });
        joined.push_str(line);
    }
    joined
}

/// Normalizes a path in an image, so that it cannot leave the image.
pub fn within(folder: &str) -> String {
    let mut parts: Vec<&str> = Vec::new();
    for part in Path::new(folder).components() {
        match part {
            std::path::Component::Normal(part) => parts.extend(part.to_str()),
            std::path::Component::ParentDir => drop(parts.pop()),
            _ => {}
        }
    }
    parts.join("/")
}

#[cfg(test)]
mod tests {
    use super::{join_lines, within};

    #[test]
    fn error_tree_is_joined_to_one_line() {
        let tree = "x: invalid index:\n├── invalid package \"a\":\n│   └── no channel\n└── invalid package \"b\":\n    └── no name";
        let expected =
            "x: invalid index: invalid package \"a\": no channel; invalid package \"b\": no name";
        assert_eq!(join_lines(tree), expected);
    }

    #[test]
    fn paths_cannot_leave_the_image() {
        for (folder, expected) in [
            ("/configs", "configs"),
            ("manifests/", "manifests"),
            ("../../etc/", "etc"),
            ("/a/./b", "a/b"),
            ("/a/../b", "b"),
        ] {
            assert_eq!(within(folder), expected);
        }
    }
}
