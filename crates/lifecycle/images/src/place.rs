//! Where an image has its catalog, and in which form.
//!
//! Labels say it. Images from before there were labels have a program that serves the catalog: what
//! it would be started with says the same.

use super::ContentError;
use super::content::within;
use mainstay_image::manifest::Run;
use std::path::Path;

/// Where an image says that its catalog is.
const CONFIGS: &str = "operators.operatorframework.io.index.configs.v1";
/// Where an older one says that its database is.
const DATABASE: &str = "operators.operatorframework.io.index.database.v1";
/// What the programs serve that are not told what.
const USUAL: &str = "bundles.db";

/// The content of a catalog image, by its path in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CatalogPlace {
    /// A folder of files.
    Folder(String),
    /// A database.
    Database(String),
}

impl CatalogPlace {
    /// Where the catalog is; `folder` is where, if somebody knows better than the image.
    ///
    /// # Errors
    /// Why it is no catalog.
    pub(crate) fn of(run: &Run, folder: Option<&str>) -> Result<Self, ContentError> {
        if let Some(folder) = folder {
            return Ok(Self::Folder(within(folder)));
        }
        // An image that was made on top of an older one has both: what it was made for counts.
        if let Some(folder) = run.labels.get(CONFIGS) {
            return Ok(Self::Folder(within(folder)));
        }
        if let Some(file) = run.labels.get(DATABASE) {
            return Ok(Self::Database(within(file)));
        }
        let words: Vec<&str> = run.entrypoint.iter().chain(&run.cmd).map(String::as_str).collect();
        Self::served(&words, &run.working_dir)
            .ok_or(ContentError::NoCatalogPlace { configs: CONFIGS, database: DATABASE })
    }

    /// What a program serves that is started with these words in a folder, if it is one that serves
    /// catalogs.
    pub fn served(words: &[&str], working_dir: &str) -> Option<Self> {
        let (program, words) = words.split_first()?;
        let program = Path::new(program).file_name()?.to_str()?;
        let inside = |path: &str| {
            let from = if path.starts_with('/') { "" } else { working_dir };
            within(&format!("{from}/{path}"))
        };
        match (program, words) {
            ("opm", ["registry", "serve", rest @ ..]) | ("registry-server", rest) => {
                Some(Self::Database(inside(database(rest))))
            }
            ("opm", ["serve", rest @ ..]) => {
                // Flags of `serve` that take a word have it behind `=`, or a folder could be meant.
                let folder = rest.iter().find(|word| word.starts_with('/'))?;
                Some(Self::Folder(inside(folder)))
            }
            _ => None,
        }
    }
}

/// The database that the arguments of a program name.
fn database<'a>(arguments: &[&'a str]) -> &'a str {
    let mut words = arguments.iter();
    while let Some(word) = words.next() {
        if matches!(*word, "--database" | "-d") {
            return words.next().copied().unwrap_or(USUAL);
        }
        if let Some(file) = word.strip_prefix("--database=").or_else(|| word.strip_prefix("-d")) {
            return file.trim_start_matches('=');
        }
    }
    USUAL
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(labels: &[(&str, &str)], command: &str, working_dir: &str) -> Run {
        let words: Vec<String> = command.split_whitespace().map(str::to_owned).collect();
        let (entrypoint, cmd) = words.split_at(words.len().min(1));
        Run {
            labels: labels.iter().map(|(key, value)| ((*key).into(), (*value).into())).collect(),
            entrypoint: entrypoint.to_vec(),
            cmd: cmd.to_vec(),
            working_dir: working_dir.into(),
            ..Run::default()
        }
    }

    #[test]
    fn labels_say_where_the_catalog_is_and_before_them_the_program() {
        let folder = |path: &str| Ok(CatalogPlace::Folder(path.to_owned()));
        let database = |path: &str| Ok(CatalogPlace::Database(path.to_owned()));
        let (configs, index) = ((CONFIGS, "/configs"), (DATABASE, "/database/index.db"));
        for (labels, command, from, wanted) in [
            (&[configs][..], "", "", folder("configs")),
            (&[index], "", "", database("database/index.db")),
            (&[configs, index], "opm registry serve -d x.db", "", folder("configs")),
            (&[], "/bin/opm registry serve --database /a/index.db", "", database("a/index.db")),
            (&[], "/bin/opm registry serve --database=index.db -p 1", "/d", database("d/index.db")),
            (&[], "opm registry serve -p 50051 -d ../x.db", "", database("x.db")),
            (&[], "/bin/registry-server", "/registry", database("registry/bundles.db")),
            (&[], "/bin/opm serve /configs --cache-dir=/tmp/cache", "", folder("configs")),
        ] {
            assert_eq!(CatalogPlace::of(&run(labels, command, from), None), wanted, "{command}");
        }
        assert_eq!(CatalogPlace::of(&run(&[index], "", ""), Some("/catalog")), folder("catalog"));
        for command in ["", "/bin/sh -c opm", "opm", "opm render /configs", "opm serve --help"] {
            let refused = CatalogPlace::of(&run(&[], command, ""), None).unwrap_err().to_string();
            assert!(refused.contains(CONFIGS) && refused.contains(DATABASE), "{refused}");
        }
    }
}
