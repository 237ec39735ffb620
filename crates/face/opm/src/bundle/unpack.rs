//! `opm alpha bundle unpack`: the content of a bundle's image in a folder.

use super::super::call::{Call, End};
use super::super::pull::{Images, Way};
use super::super::voice::{self, Level};
use super::super::{go, reference};
use super::validate::{judge_content, judge_format};
use rustls::pki_types::{CertificateDer, pem::PemObject as _};
use std::{fs, io, path::Path};

pub(super) async fn run(call: &mut Call<'_, '_>) -> Result<(), End> {
    unpack(call).await.map_err(End::Usage)
}

async fn unpack(call: &mut Call<'_, '_>) -> Result<(), String> {
    let typed = call.flags.text("out").to_owned();
    let out = call.io.at(&typed);
    match fs::metadata(&out) {
        Ok(found) if !found.is_dir() => return Err(format!("out {typed} is not a directory")),
        Ok(_) => {}
        Err(error) if error.kind() == io::ErrorKind::NotFound => fs::create_dir_all(&out)
            .map_err(|error| format!("mkdir {typed}: {}", go::reason(&error)))?,
        Err(error) => return Err(format!("stat {typed}: {}", go::reason(&error))),
    }
    let reach = reference::security(call)?;
    let authorities = match call.flags.text("root-ca") {
        "" => Vec::new(),
        file => authorities(&call.io.at(file), file)?,
    };
    let images = Images::new(reach.containerd(), Way::Containerd(authorities));
    let image = images.pull(call.io, call.argument(0)).await?;
    let place =
        tempfile::Builder::new().prefix("bundle-").tempdir().map_err(|error| go::reason(&error))?;
    let root = place.path().join("bundle");
    images.unpack(call.io, &image, &root, Vec::new())?;
    if call.flags.is_on("skip-validation") {
        voice::log(call.io, Level::Info, "skipping bundle validation", &[("cmd", "unpack")]);
    } else {
        judge_format(&root).map_err(|why| format!("bundle format validation failed: {why}"))?;
        judge_content(&root, None)
            .map_err(|why| format!("bundle content validation failed: {why}"))?;
    }
    copy(&root, &out)
        .map_err(|why| format!("failed to copy unpacked content to output directory: {why}"))
}

/// The certificates of a file.
fn authorities(path: &Path, typed: &str) -> Result<Vec<CertificateDer<'static>>, String> {
    let pem = fs::read(path).map_err(|error| format!("open {typed}: {}", go::reason(&error)))?;
    let found: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&pem).collect();
    found
        .ok()
        .filter(|found| !found.is_empty())
        .ok_or_else(|| format!("failed to fetch root CA from {typed}"))
}

/// Copies what is in a folder into another, over what is there. Links stay links.
fn copy(from: &Path, to: &Path) -> Result<(), String> {
    let failed = |what: &str, path: &Path, error: &io::Error| {
        format!("{what} {}: {}", path.display(), go::reason(error))
    };
    let entries = fs::read_dir(from).map_err(|error| failed("open", from, &error))?;
    for entry in entries {
        let entry = entry.map_err(|error| failed("read", from, &error))?;
        let (source, target) = (entry.path(), to.join(entry.file_name()));
        let kind = entry.file_type().map_err(|error| failed("stat", &source, &error))?;
        let done = if kind.is_dir() {
            match fs::create_dir(&target) {
                Err(error) if error.kind() != io::ErrorKind::AlreadyExists => Err(error),
                _ => {
                    copy(&source, &target)?;
                    Ok(())
                }
            }
        } else if kind.is_symlink() {
            // What is there under that name makes room, as for a file.
            let _ = fs::remove_file(&target);
            fs::read_link(&source).and_then(|link| std::os::unix::fs::symlink(link, &target))
        } else {
            fs::copy(&source, &target).map(drop)
        };
        done.map_err(|error| failed("open", &target, &error))?;
    }
    Ok(())
}
