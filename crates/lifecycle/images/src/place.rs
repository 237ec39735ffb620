//! Catalog places: the folder or database file in an image that has its catalog.
//!
//! Labels name it. Older images without labels have a program that serves the catalog: its command line
//! names it.

use super::ImageContentError;
use super::content::within;
use mainstay_image::manifest::RunConfig;
use std::path::Path;

/// The label for the folder of a file-based catalog.
pub(crate) const CONFIGS_LABEL: &str = "operators.operatorframework.io.index.configs.v1";
/// The label of older images for the file of an SQLite catalog.
const DATABASE_LABEL: &str = "operators.operatorframework.io.index.database.v1";
/// The database that the programs serve without an argument.
const DEFAULT_DATABASE: &str = "bundles.db";

/// The place of the catalog in an image: a path, and whether it is a folder or a database.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CatalogPlace {
    /// The folder of a file-based catalog.
    Folder(String),
    /// The file of an SQLite catalog.
    Database(String),
}

impl CatalogPlace {
    /// The place of the catalog in an image; `folder` overrides what the image names.
    ///
    /// # Errors
    /// Why the image is no catalog.
    pub(crate) fn of(run: &RunConfig, folder: Option<&str>) -> Result<Self, ImageContentError> {
        if let Some(folder) = folder {
            return Ok(Self::Folder(within(folder)));
        }
        // An image based on an older catalog image has both labels: the newer one counts.
        if let Some(folder) = run.labels.get(CONFIGS_LABEL) {
            return Ok(Self::Folder(within(folder)));
        }
        if let Some(file) = run.labels.get(DATABASE_LABEL) {
            return Ok(Self::Database(within(file)));
        }
        let words: Vec<&str> = run.entrypoint.iter().chain(&run.cmd).map(String::as_str).collect();
        Self::served(&words, &run.working_dir).ok_or(ImageContentError::NoCatalogPlace {
            configs: CONFIGS_LABEL,
            database: DATABASE_LABEL,
        })
    }

    /// The catalog that a command line serves in a working directory; none if the program does not serve
    /// catalogs.
    pub fn served(words: &[&str], working_dir: &str) -> Option<Self> {
        let (program, words) = words.split_first()?;
        let program = Path::new(program).file_name()?.to_str()?;
        let path_in_image = |path: &str| {
            let from = if path.starts_with('/') { "" } else { working_dir };
            within(&format!("{from}/{path}"))
        };
        match (program, words) {
            ("opm", ["registry", "serve", rest @ ..]) | ("registry-server", rest) => {
                Some(Self::Database(path_in_image(database_argument(rest))))
            }
            ("opm", ["serve", rest @ ..]) => {
                // The first absolute path is the folder. Values of flags have to follow `=`: a separate
                // one could be mistaken for the folder.
                let folder = rest.iter().find(|word| word.starts_with('/'))?;
                Some(Self::Folder(path_in_image(folder)))
            }
            _ => None,
        }
    }
}

/// The database in the arguments of a program.
fn database_argument<'a>(arguments: &[&'a str]) -> &'a str {
    let mut words = arguments.iter();
    while let Some(word) = words.next() {
        if matches!(*word, "--database" | "-d") {
            return words.next().copied().unwrap_or(DEFAULT_DATABASE);
        }
        if let Some(file) = word.strip_prefix("--database=").or_else(|| word.strip_prefix("-d")) {
            return file.trim_start_matches('=');
        }
    }
    DEFAULT_DATABASE
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(labels: &[(&str, &str)], command: &str, working_dir: &str) -> RunConfig {
        let words: Vec<String> = command.split_whitespace().map(str::to_owned).collect();
        let (entrypoint, cmd) = words.split_at(words.len().min(1));
        RunConfig {
            labels: labels.iter().map(|(key, value)| ((*key).into(), (*value).into())).collect(),
            entrypoint: entrypoint.to_vec(),
            cmd: cmd.to_vec(),
            working_dir: working_dir.into(),
            ..RunConfig::default()
        }
    }

    #[test]
    fn catalog_place_comes_from_labels_or_the_command_of_older_images() {
        let folder = |path: &str| Ok(CatalogPlace::Folder(path.to_owned()));
        let database = |path: &str| Ok(CatalogPlace::Database(path.to_owned()));
        let (configs, index) =
            ((CONFIGS_LABEL, "/configs"), (DATABASE_LABEL, "/database/index.db"));
        for (labels, command, from, expected) in [
            (&[configs][..], "", "", folder("configs")),
            (&[index], "", "", database("database/index.db")),
            (&[configs, index], "opm registry serve -d x.db", "", folder("configs")),
            (&[], "/bin/opm registry serve --database /a/index.db", "", database("a/index.db")),
            (&[], "/bin/opm registry serve --database=index.db -p 1", "/d", database("d/index.db")),
            (&[], "opm registry serve -p 50051 -d ../x.db", "", database("x.db")),
            (&[], "/bin/registry-server", "/registry", database("registry/bundles.db")),
            (&[], "/bin/opm serve /configs --cache-dir=/tmp/cache", "", folder("configs")),
        ] {
            assert_eq!(CatalogPlace::of(&run(labels, command, from), None), expected, "{command}");
        }
        assert_eq!(CatalogPlace::of(&run(&[index], "", ""), Some("/catalog")), folder("catalog"));
        for command in ["", "/bin/sh -c opm", "opm", "opm render /configs", "opm serve --help"] {
            let refused = CatalogPlace::of(&run(&[], command, ""), None).unwrap_err().to_string();
            assert!(
                refused.contains(CONFIGS_LABEL) && refused.contains(DATABASE_LABEL),
                "{refused}"
            );
        }
    }
}
