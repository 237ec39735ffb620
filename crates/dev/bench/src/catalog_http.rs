//! The HTTP catalog API: processor time for each request, without socket and TLS.
//!
//! The API is called in this process, and each response is read to its end. So a figure is the time of
//! the whole process: selecting documents, reading them, and compressing them where that is not done
//! yet. There are two columns: documents in memory as compressed blobs, and documents in a file.

use crate::catalogs::CertifiedCatalog;
use crate::figure::{Figure, median};
use crate::table::{Cell, Report, Table};
use anyhow::{Context, Result, ensure};
use http_body_util::BodyExt as _;
use mainstay_catalog::{Catalog, LoadOptions};
use mainstay_clock::processor_time;
use mainstay_registry::http::CatalogHttpApi;
use mainstay_registry::{ServedCatalogs, ServedDocuments, stored};
use std::fs::File;
use std::io::{Read as _, Seek as _};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, UNIX_EPOCH};

/// Options of `catalog-http`.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    #[command(flatten)]
    catalog: CertifiedCatalog,
    /// The number of rounds; figures are medians of their means.
    #[arg(long, default_value_t = 5)]
    rounds: usize,
    /// The number of requests for a package in each round.
    #[arg(long, default_value_t = 500)]
    requests: usize,
    /// The number of downloads of the whole catalog in each round.
    #[arg(long, default_value_t = 10)]
    downloads: usize,
}

/// A kind of request: key, title, paths (one after the other), and what the client accepts.
struct Kind {
    key: &'static str,
    title: &'static str,
    paths: Vec<String>,
    coding: &'static str,
    count: usize,
}

pub(crate) async fn run(arguments: &Arguments) -> Result<Report> {
    let mut unpacked = Vec::new();
    let folder = arguments.catalog.folder(&mut unpacked)?;
    let catalog = Catalog::load(&folder, &LoadOptions::default())?;
    let packages: Vec<String> =
        catalog.packages().map(|package| package.name.to_string()).collect();
    let root = tempfile::tempdir().context("creating a folder")?;
    let now = UNIX_EPOCH + Duration::from_hours(1);
    let catalogs = Arc::new(ServedCatalogs::default());
    let memory = ServedDocuments::in_memory(catalog.blobs(), now)?;
    let mut report = Report::default();
    report.fact("documents", Figure::number(memory.len()));
    let total = memory.size();
    report.fact("bytes", Figure::size(total));
    report.fact("packages", Figure::number(packages.len()));
    let begin = processor_time();
    let file = stored::create(&root.path().join("stored"), catalog.blobs(), now)?;
    report.fact("store", Figure::time(processor_time().saturating_sub(begin)));
    catalogs.put_documents("memory", Arc::new(memory));
    catalogs.put_documents("file", Arc::new(file));
    let api = CatalogHttpApi::new(Arc::clone(&catalogs));

    let of = |query: &str| packages.iter().map(|name| format!("metas?{query}={name}")).collect();
    let all = || vec!["all".to_owned()];
    let (requests, downloads) = (arguments.requests.max(1), arguments.downloads.max(1));
    let kind = |key, title, paths, coding, count| Kind { key, title, paths, coding, count };
    let kinds = [
        kind("gzip-first", "the first `all` with gzip", all(), "gzip", 1),
        kind("zstd-first", "the first `all` with zstd", all(), "zstd", 1),
        kind("hit", "`metas?package=`, each package", of("package"), "", requests),
        kind("hit-gzip", "`metas?package=` with gzip", of("package"), "gzip", requests),
        kind("name", "`metas?name=`, each package document", of("name"), "", requests),
        kind("miss", "`metas?package=` without a hit", of("schema"), "", requests),
        kind("gzip", "`all` with gzip", all(), "gzip", downloads),
        kind("zstd", "`all` with zstd", all(), "zstd", downloads),
        kind("identity", "`all` without coding", all(), "", downloads),
    ];
    let copy = copy(&root.path().join("stored/documents.jsonl"), arguments.rounds.max(1))?;
    let columns = [("memory", "in memory"), ("file", "in a file"), ("size", "bytes of a response")];
    let mut table = Table::new("requests", "request", &columns);
    for kind in kinds {
        let mut cells = Vec::new();
        let mut length = 0;
        for place in ["memory", "file"] {
            // A first request cannot be repeated.
            let rounds = if kind.key.ends_with("-first") { 1 } else { arguments.rounds.max(1) };
            let mut times = Vec::new();
            for _ in 0..rounds {
                let (time, bytes) = measure(&api, place, &kind).await?;
                times.push(Figure::time(time));
                length = bytes;
            }
            cells.push(Cell::from(median(&times)));
        }
        if kind.key == "hit" {
            let copied = copy * u32::try_from(length)? / u32::try_from(total)?;
            report.fact("copy", Figure::time(copied));
        }
        cells.push(Figure::size(length).into());
        table.row(kind.key, kind.title, cells);
    }
    report.table(table)?;
    Ok(report)
}

/// The processor time of reading a file that the system has in memory, into one buffer: the median of
/// `rounds`. No response from a file needs less.
fn copy(file: &Path, rounds: usize) -> Result<Duration> {
    let mut file = File::open(file).with_context(|| format!("opening {}", file.display()))?;
    let mut buffer = vec![0; 64 << 10];
    let mut times = Vec::new();
    for _ in 0..rounds {
        file.rewind()?;
        let begin = processor_time();
        while file.read(&mut buffer)? > 0 {}
        times.push(processor_time().saturating_sub(begin));
    }
    times.sort_unstable();
    Ok(times[times.len() / 2])
}

/// The mean processor time of a request, and the mean length of a response.
async fn measure(api: &CatalogHttpApi, place: &str, kind: &Kind) -> Result<(Duration, u64)> {
    let mut requests = Vec::new();
    for path in kind.paths.iter().cycle().take(kind.count) {
        let request = http::Request::get(format!("/catalogs/{place}/api/v1/{path}"));
        requests.push(request.header("accept-encoding", kind.coding).body(())?);
    }
    let begin = processor_time();
    let mut length = 0;
    for request in &requests {
        let answer = api.answer(request);
        ensure!(answer.status() == 200, "{} for {}", answer.status(), request.uri());
        let mut body = answer.into_body();
        while let Some(frame) = body.frame().await {
            length += frame?.data_ref().map_or(0, |data| data.len() as u64);
        }
    }
    let time = processor_time().saturating_sub(begin);
    let count = u32::try_from(kind.count)?;
    Ok((time / count, length / u64::from(count)))
}
