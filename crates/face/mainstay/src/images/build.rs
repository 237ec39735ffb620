//! Building or reading an image from a path: a bundle folder, a catalog folder or database, an OCI
//! layout or an archive.

use crate::embedded::chain;
use mainstay_bundle::BundleFolder;
use mainstay_catalog::{Catalog, LoadOptions};
use mainstay_cause::{Cause, FileLocation};
use mainstay_content::image::content::{self, BuildOptions};
use mainstay_image::layout::{self, NamedImage};
use mainstay_image::manifest::Descriptor;
use mainstay_image::reference::ImageReference;
use mainstay_image::store::ImageStore;
use std::path::Path;

/// An image in the store.
pub(super) struct BuiltImage {
    pub(super) descriptor: Descriptor,
    /// The kind of its source: `bundle`, `catalog` or `image`.
    pub(super) what: &'static str,
}

/// Builds or reads the image for `reference`.
pub(super) fn image(
    store: &ImageStore,
    reference: &ImageReference,
    path: &Path,
) -> Result<BuiltImage, Cause> {
    let refused = |cause: Cause| {
        Cause::new(format!("the image {reference} cannot be built"))
            .at(FileLocation::file(path))
            .because(cause)
    };
    if mainstay_database::is_database(path) {
        mainstay_database::load(path).map_err(|error| refused(chain(&error)))?;
        let built = content::database(store, path, &BuildOptions::default());
        let built = built.map_err(|failure| refused(failure.cause))?;
        return Ok(BuiltImage { descriptor: built.image, what: "catalog" });
    }
    if path.is_file() || path.join("oci-layout").exists() {
        let images = layout::read(store, path).map_err(|error| {
            refused(chain(&error))
                .remedy("name an OCI layout, or an archive as `skopeo copy … oci-archive:FILE` or `docker save` writes it")
        })?;
        return Ok(BuiltImage {
            descriptor: select_image(images, reference).map_err(refused)?,
            what: "image",
        });
    }
    // A folder gives the same image as with `bundle build` and `catalog build`.
    let (shown, options) = (path.display().to_string(), BuildOptions::default());
    let (built, what) = if mainstay_bundle::is_bundle(&BundleFolder::new(path)) {
        (content::bundle(store, path, &shown, &options), "bundle")
    } else {
        check_servable(path).map_err(refused)?;
        (content::catalog(store, path, &shown, &options), "catalog")
    };
    let built = built.map_err(|failure| refused(failure.cause))?;
    Ok(BuiltImage { descriptor: built.image, what })
}

/// The image of an OCI layout that a reference names.
fn select_image(
    mut images: Vec<NamedImage>,
    reference: &ImageReference,
) -> Result<Descriptor, Cause> {
    let tag = reference.tag_or_default();
    let is_requested = |name: &String| {
        Some(name.as_str()) == tag
            || ImageReference::parse(name).is_ok_and(|name| name == *reference)
    };
    if images.len() > 1 {
        let names: Vec<String> = images.iter().flat_map(|image| image.names.clone()).collect();
        images.retain(|image| image.names.iter().any(is_requested));
        if images.len() != 1 {
            return Err(Cause::new(format!(
                "it contains several images: {}",
                if names.is_empty() { "none has a name".to_owned() } else { names.join(", ") }
            ))
            .remedy(
                "copy one of them into a layout of its own, or give it its own tag as reference",
            ));
        }
    }
    images.pop().map(|image| image.descriptor).ok_or_else(|| {
        Cause::new("it contains no image").remedy("name a layout or an archive with an image")
    })
}

/// Refuses a folder that is no valid catalog with a package.
fn check_servable(path: &Path) -> Result<(), Cause> {
    let catalog = Catalog::load(path, &LoadOptions::default()).map_err(|error| {
        Cause::new(error.headline()).remedy("see all problems with: mainstay catalog validate DIR")
    })?;
    if catalog.packages().next().is_none() {
        return Err(Cause::new("it is neither a bundle nor a catalog").remedy(
            "name a bundle (a folder with `manifests` and `metadata`) or a file-based catalog",
        ));
    }
    Ok(())
}
