//! `opm alpha bundle unpack`: writes the content of a bundle image to a folder.

use super::super::call::{Call, Failure};
use super::super::error::PathError;
use super::super::log::{self, Level};
use super::super::pull::{ImagePuller, PullLibrary};
use super::super::reference;
use super::error::UnpackBundleError;
use super::validate::{validate_content, validate_format};
use rustls::pki_types::{CertificateDer, pem::PemObject as _};
use std::{fs, io, path::Path};

pub(super) async fn run(call: &mut Call<'_, '_>) -> Result<(), Failure> {
    unpack(call).await.map_err(Failure::usage)
}

async fn unpack(call: &mut Call<'_, '_>) -> Result<(), UnpackBundleError> {
    let typed = call.flags.text("out").to_owned();
    let out = call.io.resolve_path(&typed);
    match fs::metadata(&out) {
        Ok(found) if !found.is_dir() => return Err(UnpackBundleError::NoFolder { out: typed }),
        Ok(_) => {}
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            fs::create_dir_all(&out).map_err(PathError::of("mkdir", typed))?;
        }
        Err(error) => return Err(PathError::of("stat", typed)(error).into()),
    }
    let access = reference::registry_access(call)?;
    let authorities = match call.flags.text("root-ca") {
        "" => Vec::new(),
        file => authorities(&call.io.resolve_path(file), file)?,
    };
    let images = ImagePuller::new(access.containerd(), PullLibrary::Containerd(authorities));
    let image = images.pull(call.io, call.argument(0)).await?;
    let place =
        tempfile::Builder::new().prefix("bundle-").tempdir().map_err(UnpackBundleError::TempDir)?;
    let root = place.path().join("bundle");
    images.unpack(call.io, &image, &root, Vec::new())?;
    if call.flags.is_on("skip-validation") {
        log::write(call.io, Level::Info, "skipping bundle validation", &[("cmd", "unpack")]);
    } else {
        validate_format(&root).map_err(UnpackBundleError::Format)?;
        validate_content(&root, None).map_err(UnpackBundleError::Content)?;
    }
    copy(&root, &out).map_err(UnpackBundleError::Copy)
}

/// The certificates of a file.
fn authorities(
    path: &Path,
    typed: &str,
) -> Result<Vec<CertificateDer<'static>>, UnpackBundleError> {
    let pem = fs::read(path).map_err(PathError::of("open", typed))?;
    let found: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&pem).collect();
    found
        .ok()
        .filter(|found| !found.is_empty())
        .ok_or_else(|| UnpackBundleError::NoCertificates { file: typed.to_owned() })
}

/// Copies the content of a folder into another one and replaces existing files. Links stay links.
fn copy(from: &Path, to: &Path) -> Result<(), PathError> {
    let failed = |operation, path: &Path| PathError::of(operation, path.display().to_string());
    let entries = fs::read_dir(from).map_err(failed("open", from))?;
    for entry in entries {
        let entry = entry.map_err(failed("read", from))?;
        let (source, target) = (entry.path(), to.join(entry.file_name()));
        let kind = entry.file_type().map_err(failed("stat", &source))?;
        let done = if kind.is_dir() {
            match fs::create_dir(&target) {
                Err(error) if error.kind() != io::ErrorKind::AlreadyExists => Err(error),
                _ => {
                    copy(&source, &target)?;
                    Ok(())
                }
            }
        } else if kind.is_symlink() {
            // An existing name is replaced, as for a file.
            let _ = fs::remove_file(&target);
            fs::read_link(&source).and_then(|link| std::os::unix::fs::symlink(link, &target))
        } else {
            fs::copy(&source, &target).map(drop)
        };
        done.map_err(failed("open", &target))?;
    }
    Ok(())
}
