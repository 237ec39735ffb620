//! `opm alpha bundle validate`: validates the image of a bundle.

use super::super::call::{Call, CommandIo, Failure};
use super::super::log::{self, Level};
use super::super::pull::ImagePuller;
use super::super::reference::{self, RegistryAccess};
use super::super::tool::Tool;
use super::error::{FetchError, InvalidBundle};
use mainstay_bundle::validate::{ValidatorSettings, check_format, check_manifests};
use mainstay_bundle::{BundleFolder, Limits};
use std::path::Path;

pub(super) async fn run(call: &mut Call<'_, '_>) -> Result<(), Failure> {
    // Upstream accepts these flags here, too, and ignores them.
    let access = reference::registry_access(call).map_err(Failure::usage)?;
    let builder = call.flags.text("image-builder").to_owned();
    let name = call.flags.text("tag").to_owned();
    let hub =
        call.flags.text("optional-validators").split(',').any(|name| name.trim() == "operatorhub");
    let fields = [("container-tool", &*builder)];
    let place = tempfile::Builder::new().prefix("bundle-").tempdir().map_err(Failure::usage)?;
    let root = place.path().join("bundle");
    let message = format!("Create a temp directory at {}", root.display());
    log::write(call.io, Level::Info, &message, &fields);
    log::write(call.io, Level::Debug, "Pulling and unpacking container image", &fields);
    fetch(call.io, &builder, &name, &root, access).await.map_err(Failure::usage)?;
    let message = "Unpacked image layers, validating bundle image format & contents";
    log::write(call.io, Level::Info, message, &fields);
    let mut settings = ValidatorSettings::default();
    if let Some(path) = (call.io.environment)("OPERATOR_BUNDLE_CATEGORIES") {
        settings.categories_from(&call.io.resolve_path(&path));
    }
    validate_format(&root).map_err(Failure::usage)?;
    validate_content(&root, hub.then_some(&settings)).map_err(Failure::usage)?;
    let message = "All validation tests have been completed successfully";
    log::write(call.io, Level::Info, message, &fields);
    Ok(())
}

/// Fetches an image with a container tool, or pulls it without one.
async fn fetch(
    io: &mut CommandIo<'_>,
    builder: &str,
    name: &str,
    root: &Path,
    access: RegistryAccess,
) -> Result<(), FetchError> {
    if let Some(tool) = Tool::from_name(builder) {
        return Ok(tool.unpack(io, name, root, access)?);
    }
    let images = ImagePuller::containers(access.containers());
    let image = images.pull(io, name).await?;
    Ok(images.unpack(io, &image, root, Vec::new())?)
}

/// Validates the format of a bundle.
pub(super) fn validate_format(root: &Path) -> Result<(), InvalidBundle> {
    join_errors(find_format_errors(root, &root.to_string_lossy()))
}

/// The format errors of a bundle, sorted. `path` is its folder in messages.
pub(crate) fn find_format_errors(root: &Path, path: &str) -> Vec<String> {
    check_format(&BundleFolder::new(root), path, &Limits::default())
}

/// Validates the content of a bundle. With `hub`, the OperatorHub validator runs, too.
pub(super) fn validate_content(
    root: &Path,
    hub: Option<&ValidatorSettings>,
) -> Result<(), InvalidBundle> {
    let manifests = root.join("manifests");
    let manifests = manifests.to_string_lossy();
    let found =
        check_manifests(&BundleFolder::new(root), "manifests", &manifests, &Limits::default(), hub);
    join_errors(found)
}

fn join_errors(found: Vec<String>) -> Result<(), InvalidBundle> {
    if found.is_empty() { Ok(()) } else { Err(InvalidBundle(found)) }
}
