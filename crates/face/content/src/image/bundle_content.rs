//! Bundles in images: an image is fetched and its bundle unpacked to a temporary folder.

use super::{
    access::{StoreFolder, TrustArguments},
    copy::working_store,
    failure,
    location::Location,
    progress,
    transfer::{ImageTransfer, blocking},
};
use mainstay_cause::Cause;
use mainstay_command::environment;
use mainstay_command::exit::CommandFailure;
use mainstay_command::io::CommandIo;
use mainstay_gocompat::io_error_text;
use mainstay_image::{
    manifest::ImageDocument, platform::Platform, registry::ImageSelection, unpack,
};
use tempfile::TempDir;

/// The folders of a bundle, which OLM v1 reads whatever the labels of the image say.
const FOLDERS: [&str; 2] = ["manifests", "metadata"];
/// The subfolder that an image is unpacked to.
const CONTENT: &str = "bundle";

/// A bundle of an image in a temporary folder, which is removed with this value.
pub struct UnpackedBundle(TempDir);

impl UnpackedBundle {
    /// The bundle folder.
    pub fn folder(&self) -> std::path::PathBuf {
        self.0.path().join(CONTENT)
    }
}

/// Fetches an image from any location, and unpacks its bundle.
///
/// # Errors
/// The text is no location, or the image cannot be fetched or unpacked.
pub async fn unpack_bundle(
    io: &mut CommandIo<'_>,
    image: &str,
    store: &StoreFolder,
    trust: &TrustArguments,
) -> Result<UnpackedBundle, CommandFailure> {
    let source = Location::read(image).map_err(CommandFailure::usage)?;
    let what = format!("the bundle {source} cannot be unpacked");
    let (store, _scratch) = working_store(store, &[&source], io)?;
    let transfer = ImageTransfer::with_policy(trust, io)?;
    let parent = environment::scratch_folder(io.variable);
    let folder = tempfile::Builder::new().prefix("mainstay-bundle-").tempdir_in(&parent);
    let folder = folder.map_err(|error| {
        let cause = Cause::new(format!("no folder can be created in {}", parent.display()));
        cause
            .because(Cause::new(io_error_text(&error)))
            .remedy("name another folder for temporary files with TMPDIR")
    })?;
    let unpacked = UnpackedBundle(folder);
    let target = unpacked.folder();
    // Bundles are the same on every platform, and most images have only one.
    let selection = ImageSelection::Platform(Platform::host());
    progress::transfer(io, transfer.progress_to_show(), async {
        let image = transfer.obtain(&store, &source, &selection).await?;
        let unreadable = |error| failure::store(&what, &error);
        let ImageDocument::Manifest(manifest) = store.document_of(&image).map_err(unreadable)?
        else {
            return Err(Cause::new(format!("{source} is an index of indexes")).into());
        };
        let config = store.config(&manifest).map_err(unreadable)?;
        let only = FOLDERS.map(str::to_owned).to_vec();
        let options = unpack::Options { only, ..unpack::Options::default() };
        let result =
            blocking(move || unpack::image(&store, &manifest, &config, &target, options)).await?;
        result.map_err(|error| failure::unpack(&what, &error))
    })
    .await?;
    Ok(unpacked)
}
