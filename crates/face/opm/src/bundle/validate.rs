//! `opm alpha bundle validate`: whether the image of a bundle is sound.

use super::super::call::{Call, End, Io};
use super::super::pull::Images;
use super::super::reference::{self, Reach};
use super::super::tool::Tool;
use super::super::voice::{self, Level};
use super::error::{FetchError, Unsound};
use mainstay_bundle::validate::{ValidatorSettings, check_format, check_manifests};
use mainstay_bundle::{BundleFolder, Limits};
use std::path::Path;

pub(super) async fn run(call: &mut Call<'_, '_>) -> Result<(), End> {
    // Upstream takes these flags here, too, and forgets them.
    let reach = reference::security(call).map_err(End::usage)?;
    let builder = call.flags.text("image-builder").to_owned();
    let name = call.flags.text("tag").to_owned();
    let hub =
        call.flags.text("optional-validators").split(',').any(|name| name.trim() == "operatorhub");
    let fields = [("container-tool", &*builder)];
    let place = tempfile::Builder::new().prefix("bundle-").tempdir().map_err(End::usage)?;
    let root = place.path().join("bundle");
    let said = format!("Create a temp directory at {}", root.display());
    voice::log(call.io, Level::Info, &said, &fields);
    voice::log(call.io, Level::Debug, "Pulling and unpacking container image", &fields);
    fetch(call.io, &builder, &name, &root, reach).await.map_err(End::usage)?;
    let said = "Unpacked image layers, validating bundle image format & contents";
    voice::log(call.io, Level::Info, said, &fields);
    let mut settings = ValidatorSettings::default();
    if let Some(path) = (call.io.environment)("OPERATOR_BUNDLE_CATEGORIES") {
        settings.categories_from(&call.io.at(&path));
    }
    judge_format(&root).map_err(End::usage)?;
    judge_content(&root, hub.then_some(&settings)).map_err(End::usage)?;
    let said = "All validation tests have been completed successfully";
    voice::log(call.io, Level::Info, said, &fields);
    Ok(())
}

/// Gets an image with a container tool; without one it is pulled here.
async fn fetch(
    io: &mut Io<'_>,
    builder: &str,
    name: &str,
    root: &Path,
    reach: Reach,
) -> Result<(), FetchError> {
    if let Some(tool) = Tool::named(builder) {
        return Ok(tool.unpack(io, name, root, reach)?);
    }
    let images = Images::containers(reach.containers());
    let image = images.pull(io, name).await?;
    Ok(images.unpack(io, &image, root, Vec::new())?)
}

/// What is wrong with the format of a bundle, as one error.
pub(super) fn judge_format(root: &Path) -> Result<(), Unsound> {
    together(faults(root, &root.to_string_lossy()))
}

/// What is wrong with the format of a bundle, sorted. `shown` is how messages call its folder.
pub(crate) fn faults(root: &Path, shown: &str) -> Vec<String> {
    check_format(&BundleFolder::new(root), shown, &Limits::default())
}

/// What is wrong with the content of a bundle, as one error. `hub` asks the validator of
/// OperatorHub besides.
pub(super) fn judge_content(root: &Path, hub: Option<&ValidatorSettings>) -> Result<(), Unsound> {
    let shown = root.join("manifests");
    let shown = shown.to_string_lossy();
    let found =
        check_manifests(&BundleFolder::new(root), "manifests", &shown, &Limits::default(), hub);
    together(found)
}

fn together(found: Vec<String>) -> Result<(), Unsound> {
    if found.is_empty() { Ok(()) } else { Err(Unsound(found)) }
}
