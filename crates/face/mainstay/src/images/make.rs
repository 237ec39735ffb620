//! From a path to an image: a bundle folder, a catalog folder, a layout or an archive.

use crate::embedded::{chain, io};
use mainstay_bundle::{Bundle, Folder, Kind, Tree};
use mainstay_catalog::{Catalog, LoadOptions};
use mainstay_cause::{Cause, Place};
use mainstay_image::build::{self, Files};
use mainstay_image::layout::{self, Named};
use mainstay_image::manifest::{Config, Descriptor, Run};
use mainstay_image::platform::Platform;
use mainstay_image::reference::Reference;
use mainstay_image::store::Store;
use std::collections::BTreeMap;
use std::path::Path;

/// Where a catalog lies in its image.
const CONFIGS: &str = "configs";
/// The label that says so.
const CONFIGS_LABEL: &str = "operators.operatorframework.io.index.configs.v1";
/// How long a file may be, how many there may be, and how deep they may lie.
const LONGEST: u64 = 256 << 20;
const MOST: usize = 100_000;
const DEEPEST: usize = 64;

/// An image in the store.
pub(super) struct Made {
    pub(super) descriptor: Descriptor,
    /// What it was made from: `bundle`, `catalog` or `image`.
    pub(super) what: &'static str,
}

/// Makes or reads the image that shall be known as `reference`.
pub(super) fn image(store: &Store, reference: &Reference, path: &Path) -> Result<Made, Cause> {
    let refused = |cause: Cause| {
        Cause::new(format!("the image {reference} cannot be made"))
            .at(Place::file(path))
            .because(cause)
    };
    if path.is_file() || path.join("oci-layout").exists() {
        let named = layout::read(store, path).map_err(|error| {
            refused(chain(&error))
                .remedy("name an OCI layout, or an archive as `skopeo copy … oci-archive:FILE` or `docker save` writes it")
        })?;
        return Ok(Made { descriptor: choose(named, reference).map_err(refused)?, what: "image" });
    }
    let tree = Folder::new(path);
    if mainstay_bundle::is_bundle(&tree) {
        let (files, labels) = bundle(&tree, path).map_err(refused)?;
        let run = Run { labels, ..Run::default() };
        return assemble(store, &files, run, "bundle").map_err(refused);
    }
    let files = catalog(&tree, path).map_err(refused)?;
    let text = |words: &[&str]| words.iter().map(|&word| word.to_owned()).collect();
    let run = Run {
        labels: BTreeMap::from([(CONFIGS_LABEL.to_owned(), format!("/{CONFIGS}"))]),
        entrypoint: text(&["/bin/opm"]),
        cmd: text(&["serve", "/configs", "--cache-dir=/tmp/cache"]),
        ..Run::default()
    };
    assemble(store, &files, run, "catalog").map_err(refused)
}

/// The image of a layout that is meant.
fn choose(mut named: Vec<Named>, reference: &Reference) -> Result<Descriptor, Cause> {
    let tag = reference.tag_or_default();
    let means = |name: &String| {
        Some(name.as_str()) == tag || Reference::parse(name).is_ok_and(|name| name == *reference)
    };
    if named.len() > 1 {
        let names: Vec<String> = named.iter().flat_map(|one| one.names.clone()).collect();
        named.retain(|one| one.names.iter().any(means));
        if named.len() != 1 {
            return Err(Cause::new(format!(
                "there are several images in it: {}",
                if names.is_empty() { "none has a name".to_owned() } else { names.join(", ") }
            ))
            .remedy(
                "copy one of them into a layout of its own, or give it its own tag as reference",
            ));
        }
    }
    named.pop().map(|one| one.descriptor).ok_or_else(|| {
        Cause::new("there is no image in it").remedy("name a layout or an archive with an image")
    })
}

fn assemble(store: &Store, files: &Files, run: Run, what: &'static str) -> Result<Made, Cause> {
    let config = Config { config: run, ..Config::default() };
    let layer = build::layer(store, files).map_err(|error| chain(&error))?;
    let made = build::image(store, Platform::linux("amd64"), config, &[layer]);
    let mut descriptor = made.map_err(|error| chain(&error))?;
    // Content for every platform.
    descriptor.platform = None;
    Ok(Made { descriptor, what })
}

/// The files and labels of a bundle that can be read.
fn bundle(tree: &Folder, path: &Path) -> Result<(Files, BTreeMap<String, String>), Cause> {
    let bundle = Bundle::read(path).map_err(|error| {
        let problem = error.problem();
        let file = path.join(&problem.file);
        let place =
            problem.line.map_or_else(|| Place::file(&file), |line| Place::at(&file, line, 1));
        Cause::new(&problem.message)
            .at(place)
            .remedy("`mainstay bundle validate DIR` says all that is wrong with it")
    })?;
    let mut files = Files::default();
    for folder in ["manifests", "metadata", "tests"] {
        if path.join(folder).is_dir() {
            collect(tree, path, folder, folder, &mut files, &mut 0)?;
        }
    }
    Ok((files, bundle.annotations().all.clone()))
}

/// The files of a catalog that can be served.
fn catalog(tree: &Folder, path: &Path) -> Result<Files, Cause> {
    let neither =
        "name a bundle (a folder with `manifests` and `metadata`) or a file-based catalog";
    let catalog = Catalog::load(path, &LoadOptions::default()).map_err(|error| {
        Cause::new(error.headline())
            .remedy("`mainstay catalog validate DIR` says all that is wrong with it")
    })?;
    if catalog.packages().next().is_none() {
        return Err(Cause::new("it is neither a bundle nor a catalog").remedy(neither));
    }
    let mut files = Files::default();
    collect(tree, path, "", CONFIGS, &mut files, &mut 0)?;
    Ok(files)
}

/// Adds all files of a folder, below `target`.
fn collect(
    tree: &Folder,
    root: &Path,
    folder: &str,
    target: &str,
    files: &mut Files,
    count: &mut usize,
) -> Result<(), Cause> {
    let at = |name: &str| Place::file(root.join(name));
    if folder.split('/').count() > DEEPEST {
        return Err(Cause::new("its folders lie too deep in each other").at(at(folder)));
    }
    let entries = tree.list(folder);
    let entries = entries.map_err(|error| io(&error).at(at(folder)))?;
    for entry in entries {
        let below = |parent: &str| match parent {
            "" => entry.name.clone(),
            parent => format!("{parent}/{}", entry.name),
        };
        let (name, target) = (below(folder), below(target));
        *count += 1;
        if *count > MOST {
            return Err(Cause::new(format!("there are more than {MOST} files in it")));
        }
        match entry.kind {
            Kind::Folder => collect(tree, root, &name, &target, files, count)?,
            Kind::File => {
                let bytes = tree.read(&name, LONGEST).map_err(|error| io(&error).at(at(&name)))?;
                if bytes.len() as u64 > LONGEST {
                    return Err(
                        Cause::new(format!("it is longer than {LONGEST} bytes")).at(at(&name))
                    );
                }
                files.add(&target, bytes).map_err(|error| chain(&error).at(at(&name)))?;
            }
            Kind::Outside | Kind::Other => {
                return Err(Cause::new("it is neither a file nor a folder in there")
                    .at(at(&name))
                    .remedy("take it out, or put the file itself there"));
            }
        }
    }
    Ok(())
}
