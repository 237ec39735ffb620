//! Why a catalog cannot be loaded, in the words of upstream's server, which looks at a catalog package
//! by package.

use super::super::go;
use super::Settings;
use mainstay_catalog::{Declared, Folder, LoadError, LoadOptions};
use std::collections::BTreeMap;

/// How errors begin that are found when the documents of one package are looked at.
const OF_PACKAGES: [&str; 5] = [
    "parse package: ",
    "parse channel: ",
    "parse bundle: ",
    "parse deprecation: ",
    "read bundle objects: ",
];

/// What is wrong with a folder that could not be loaded.
pub(super) fn broken(settings: &Settings, error: &LoadError) -> String {
    if settings.typed.is_empty() {
        return "stat .: os: DirFS with empty root".to_owned();
    }
    match std::fs::metadata(&settings.folder) {
        Err(error) => return format!("stat .: {}", go::reason(&error)),
        Ok(found) if !found.is_dir() => return "stat .: not a directory".to_owned(),
        Ok(_) => {}
    }
    let said = error.upstream();
    let package = |name: &str, why: &str| {
        format!("build package index: process package {}: {why}", go::quote(name))
    };
    let declared = match Declared::read(&Folder::new(&settings.folder), &LoadOptions::default()) {
        Ok(declared) => declared,
        Err(error) => {
            // What a document means is judged with its package, whether it is one before.
            let said = error.upstream();
            let of = error.problems.iter().find_map(|problem| problem.blob.as_ref());
            let typed = OF_PACKAGES.iter().any(|words| said.starts_with(words));
            return match of {
                _ if said.starts_with("object '")
                    && said.ends_with("is missing root schema field") =>
                {
                    "invalid custom schema meta: invalid schema: must not be empty".to_owned()
                }
                Some(blob) if typed => {
                    let of =
                        if &*blob.schema == "olm.package" { &blob.name } else { &blob.package };
                    package(of, &said)
                }
                _ => said,
            };
        }
    };
    if let Some(cache) = settings.cache.as_ref().filter(|_| settings.enforce)
        && let Err(why) = cache.check(declared.blobs())
    {
        // Whether the digest fits is looked at before what the documents mean.
        return why;
    }
    let mut packages = BTreeMap::<_, Vec<_>>::new();
    for blob in declared.blobs() {
        if let Some(why) = mainstay_registry::refusal_of(&blob) {
            return why;
        }
        let name = if &**blob.schema() == "olm.package" { blob.name() } else { blob.package() };
        let Ok(value) = blob.value() else { continue };
        packages.entry(name.clone()).or_default().push((blob.origin().clone(), value));
    }
    for (name, documents) in packages {
        let alone = Declared::of(documents).and_then(Declared::check);
        if let Err(error) = alone {
            return package(&name, &error.upstream());
        }
    }
    said
}
