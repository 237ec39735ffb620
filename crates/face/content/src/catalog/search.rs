//! `mainstay catalog search`: packages of several catalogs, by the words of a text.
//!
//! A catalog that cannot be read is reported, and the others are searched.

use super::cluster_catalog::{self, names_cluster_catalog};
use super::list::channel_head;
use super::open::{OpenedPath, open, open_on_cluster};
use super::rows::{self, Row};
use clap::Args;
use mainstay_catalog::{BlobError, KeptContent, Package};
use mainstay_cause::Cause;
use mainstay_command::cluster::{ClusterHandle, ConnectionArguments};
use mainstay_command::exit::{CommandFailure, ExitStatus};
use mainstay_command::io::CommandIo;
use mainstay_command::text::{Format, count, escape_controls};
use serde_json::{Value, json};
use std::cmp::Reverse;

/// How many characters of a description a row has.
const MAX_DESCRIPTION: usize = 60;

/// Arguments of `search`.
#[derive(Args, Debug)]
pub(super) struct Arguments {
    /// Words that the name, the description or the keywords of a package have: all of them, in upper
    /// or lower case [default: all packages].
    #[arg(value_name = "TEXT")]
    text: Option<String>,
    /// Folders of catalogs, or clustercatalog/NAME [default: all served ClusterCatalogs of the cluster].
    #[arg(value_name = "PATH")]
    paths: Vec<String>,
    /// Output format.
    #[arg(short, long, value_enum, value_name = "FORMAT", default_value_t = Format::Text)]
    output: Format,
    /// The cluster of ClusterCatalogs.
    #[command(flatten, next_help_heading = "Cluster")]
    connection: ConnectionArguments,
}

impl Arguments {
    /// The words to find, in lower case, and the PATHs. A TEXT that is a PATH is one: TEXT is optional.
    fn words_and_paths(&self, io: &CommandIo<'_>) -> (Vec<String>, Vec<&String>) {
        let mut paths: Vec<&String> = self.paths.iter().collect();
        let text = match &self.text {
            Some(text)
                if names_cluster_catalog(text)
                    || text.contains('/') && io.folder.join(text).is_dir() =>
            {
                paths.insert(0, text);
                ""
            }
            Some(text) => text,
            None => "",
        };
        (text.split_whitespace().map(str::to_lowercase).collect(), paths)
    }
}

/// A package that was found, and what sorts it.
struct FoundPackage {
    /// Highest priority first, then by catalog and package.
    key: (Reverse<i64>, String, String),
    row: Row,
}

pub(super) async fn run<C: ClusterHandle>(
    arguments: &Arguments,
    io: &mut CommandIo<'_>,
    connect: impl AsyncFnOnce(&ConnectionArguments) -> Result<C, CommandFailure>,
) -> Result<ExitStatus, CommandFailure> {
    let (words, paths) = arguments.words_and_paths(io);
    let needs_cluster = paths.is_empty() || paths.iter().any(|path| names_cluster_catalog(path));
    let cluster = if needs_cluster { Some(connect(&arguments.connection).await?) } else { None };
    let mut search = Search { words, found: Vec::new(), read: 0, failed: 0 };
    match &cluster {
        None => {
            for path in paths {
                search.add(io, open(io, path).map(OpenedPath::Folder));
            }
        }
        Some(cluster) if paths.is_empty() => {
            for catalog in cluster_catalog::list(cluster).await? {
                let path = cluster_catalog::path_of(&catalog);
                let served = cluster_catalog::read(cluster, &catalog, &path, None).await;
                search.add(io, served.map(OpenedPath::ClusterCatalog));
            }
        }
        Some(cluster) => {
            for path in paths {
                search.add(io, open_on_cluster(io, path, None, cluster).await);
            }
        }
    }
    Ok(search.finish(io, arguments.output))
}

/// A search in several catalogs.
struct Search {
    words: Vec<String>,
    found: Vec<FoundPackage>,
    /// The number of searched catalogs.
    read: usize,
    /// The number of catalogs that cannot be read.
    failed: usize,
}

impl Search {
    /// Searches a catalog, or reports why it cannot be read.
    fn add(&mut self, io: &mut CommandIo<'_>, opened: Result<OpenedPath, CommandFailure>) {
        match opened.and_then(|opened| find_packages(&opened, &self.words)) {
            Ok(found) => {
                self.read += 1;
                self.found.extend(found);
            }
            Err(failure) => {
                self.failed += 1;
                let _ = write!(io.stderr, "error: {}", failure.cause.render());
            }
        }
    }

    /// Prints what was found.
    fn finish(mut self, io: &mut CommandIo<'_>, format: Format) -> ExitStatus {
        if self.found.is_empty() {
            let catalogs = count(self.read, "readable catalog");
            let words = self.words.join(" ");
            let _ = match self.read {
                0 if self.failed == 0 => writeln!(io.stderr, "note: the cluster serves no catalog"),
                _ if words.is_empty() => writeln!(io.stderr, "note: no package in {catalogs}"),
                _ => writeln!(
                    io.stderr,
                    "note: no package in {catalogs} has the words: {}",
                    escape_controls(&words)
                ),
            };
        }
        self.found.sort_by(|a, b| a.key.cmp(&b.key));
        let rows = self.found.into_iter().map(|found| found.row).collect();
        let header = ["CATALOG", "PACKAGE", "DEFAULT CHANNEL", "HEAD", "VERSION", "DESCRIPTION"];
        rows::print(io, format, &header, rows);
        if self.failed == 0 { ExitStatus::Done } else { ExitStatus::Failed }
    }
}

/// The packages of a catalog that have all words.
fn find_packages(
    opened: &OpenedPath,
    words: &[String],
) -> Result<Vec<FoundPackage>, CommandFailure> {
    let catalog = opened.load(KeptContent::Light)?;
    let unreadable = |error: BlobError| CommandFailure::from(Cause::new(error.to_string()));
    let mut found = Vec::new();
    for package in catalog.packages() {
        let texts = PackageTexts::read(package).map_err(unreadable)?;
        if texts.has(&package.name, words) {
            found.push(found_package(opened, package, &texts));
        }
    }
    Ok(found)
}

/// The texts about a package, of its own document and of the head of its default channel.
#[derive(Default)]
struct PackageTexts {
    display_name: String,
    summary: String,
    description: String,
    keywords: Vec<String>,
}

impl PackageTexts {
    fn read(package: &Package) -> Result<Self, BlobError> {
        let head = package.channel(&package.default_channel).map(|channel| &*channel.head().name);
        let head = head.and_then(|name| package.bundle(name));
        let metadata = match head {
            Some(bundle) if bundle.csv_metadata_count() > 0 => bundle.csv_metadata()?,
            _ => None,
        };
        let metadata = metadata.unwrap_or_default();
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let keywords = metadata["keywords"].as_array().into_iter().flatten();
        Ok(Self {
            display_name: text(&metadata["displayName"]),
            summary: text(&metadata["annotations"]["description"]),
            description: package.description()?,
            keywords: keywords.map(text).collect(),
        })
    }

    /// Whether the texts and the name have all words.
    fn has(&self, name: &str, words: &[String]) -> bool {
        let texts = [name, &self.display_name, &self.summary, &self.description];
        let all = texts.into_iter().chain(self.keywords.iter().map(String::as_str));
        let all: Vec<String> = all.map(str::to_lowercase).collect();
        words.iter().all(|word| all.iter().any(|text| text.contains(word)))
    }

    /// One line about the package.
    fn line(&self) -> String {
        let texts = [&self.summary, &self.description, &self.display_name].into_iter();
        let mut lines = texts.filter_map(|text| text.lines().find(|line| !line.trim().is_empty()));
        shorten(lines.next().unwrap_or_default().trim())
    }
}

fn shorten(line: &str) -> String {
    if line.chars().count() <= MAX_DESCRIPTION {
        return line.to_owned();
    }
    let beginning: String = line.chars().take(MAX_DESCRIPTION - 1).collect();
    format!("{}…", beginning.trim_end())
}

fn found_package(opened: &OpenedPath, package: &Package, texts: &PackageTexts) -> FoundPackage {
    let catalog = opened.argument();
    let priority = match opened {
        OpenedPath::Folder(_) => None,
        OpenedPath::ClusterCatalog(served) => Some(served.priority),
    };
    let (head, version) = package
        .channel(&package.default_channel)
        .map(|channel| channel_head(package, channel))
        .unwrap_or_default();
    let cells = [catalog, &package.name, &package.default_channel, head, &version, &texts.line()];
    let row = Row {
        cells: cells.map(escape_controls).to_vec(),
        value: json!({
            "catalog": catalog,
            "priority": priority,
            "package": &*package.name,
            "defaultChannel": &*package.default_channel,
            "head": head,
            "version": version,
            "displayName": texts.display_name,
            "summary": texts.summary,
            "description": texts.description,
            "keywords": texts.keywords,
            "deprecation": package.deprecation.as_deref(),
        }),
    };
    let key = (Reverse(priority.unwrap_or_default()), catalog.to_owned(), package.name.to_string());
    FoundPackage { key, row }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_description_ends_with_an_ellipsis() {
        assert_eq!(shorten("short"), "short");
        let line = "é".repeat(MAX_DESCRIPTION);
        assert_eq!(shorten(&line), line);
        let longer = shorten(&format!("{line}é"));
        assert_eq!(longer.chars().count(), MAX_DESCRIPTION);
        assert!(longer.ends_with("é…"));
    }
}
