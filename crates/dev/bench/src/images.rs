//! Images pushed, pulled and unpacked by `mainstay image`, compared with `skopeo copy` if that is
//! installed. Each command is a process of its own.
//!
//! Our own registry serves in this process, on loopback, with a new store for every push. Both
//! programs talk to it, and it is not counted. The image is generated from texts and from
//! incompressible bytes, and is the same on every machine.

use crate::catalogs::child::{self, Cost};
use crate::figure::Figure;
use crate::launch::Program;
use crate::table::{Cell, Report, Table};
use anyhow::{Context, Result};
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto;
use mainstay_clock::Clock;
use mainstay_image::build::{self, LayerWriter};
use mainstay_image::layout;
use mainstay_image::manifest::{Descriptor, ImageConfig};
use mainstay_image::platform::Platform;
use mainstay_image::serve::{RegistryHandler, RegistrySettings};
use mainstay_image::store::ImageStore;
use std::convert::Infallible;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::process::Command;
use tokio::net::TcpListener;

/// Options of `images`.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    #[command(flatten)]
    program: Program,
    /// The unpacked size of the image, in megabytes.
    #[arg(long, value_name = "MB", default_value_t = 400)]
    size: u64,
    /// The number of layers.
    #[arg(long, default_value_t = 4, value_parser = clap::value_parser!(u64).range(1..=100))]
    layers: u64,
    /// The number of runs per command: the least time and the most memory count.
    #[arg(long, default_value_t = 3)]
    rounds: usize,
    /// The skopeo to compare with; by default the installed one, if any.
    #[arg(long, value_name = "PROGRAM", default_value = "skopeo")]
    skopeo: PathBuf,
}

/// The size of each file of the image, in bytes.
const FILE_SIZE: u64 = 1_000_000;

/// Generates texts like those of a catalog, or random bytes.
struct ContentGenerator {
    left: u64,
    state: u64,
    plain: bool,
    rest: Vec<u8>,
}

impl ContentGenerator {
    fn new(seed: u64, plain: bool) -> Self {
        Self {
            left: FILE_SIZE,
            state: seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1,
            plain,
            rest: Vec::new(),
        }
    }

    /// Xorshift: any reproducible sequence would do.
    fn next(&mut self) -> u64 {
        self.state ^= self.state << 13;
        self.state ^= self.state >> 7;
        self.state ^= self.state << 17;
        self.state
    }
}

impl Read for ContentGenerator {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.left == 0 {
            return Ok(0);
        }
        while self.rest.len() < 4096 {
            let number = self.next();
            if self.plain {
                let line = format!(
                    "- name: kiwi.v1.{}.{}\n  replaces: kiwi.v1.{}\n",
                    number % 40,
                    number % 1000,
                    number % 7
                );
                self.rest.extend_from_slice(line.as_bytes());
            } else {
                self.rest.extend_from_slice(&number.to_le_bytes());
            }
        }
        let left = usize::try_from(self.left).unwrap_or(usize::MAX);
        let count = buffer.len().min(left).min(self.rest.len());
        buffer[..count].copy_from_slice(&self.rest[..count]);
        self.rest.drain(..count);
        self.left -= count as u64;
        Ok(count)
    }
}

/// An image of files, of which every other one is text.
fn image(store: &ImageStore, size: u64, layers: u64) -> Result<Descriptor> {
    let (files, mut layer_blobs) = ((size * 1_000_000 / FILE_SIZE).max(layers), Vec::new());
    for layer in 0..layers {
        let mut writer = LayerWriter::new(store)?;
        for file in 0..files / layers {
            let seed = layer * files + file + 1;
            let name = format!("configs/layer{layer:03}/file{file:06}");
            writer.add(&name, 0o644, FILE_SIZE, ContentGenerator::new(seed, seed % 2 == 0))?;
        }
        layer_blobs.push(writer.finish()?);
    }
    let mut image = build::image(store, Platform::host(), ImageConfig::default(), &layer_blobs)?;
    image.platform = None;
    Ok(image)
}

/// Starts a registry of a store; returns its address.
async fn serve(store: ImageStore) -> Result<String> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let domain = listener.local_addr()?.to_string();
    let registry = RegistryHandler::new(store, RegistrySettings::new(&domain), Clock::system());
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let registry = registry.clone();
            tokio::spawn(async move {
                let service = service_fn(move |request| {
                    let registry = registry.clone();
                    async move { Ok::<_, Infallible>(registry.handle(request).await) }
                });
                let server = auto::Builder::new(TokioExecutor::new());
                // A client that disconnects reports its own error.
                let _ = server.serve_connection(TokioIo::new(stream), service).await;
            });
        }
    });
    Ok(domain)
}

/// The compared programs and their working folder.
struct ImageComparison {
    ours: PathBuf,
    theirs: Option<PathBuf>,
    rounds: usize,
    work: tempfile::TempDir,
    /// The number of transferred bytes.
    moved: u64,
}

pub(crate) async fn run(arguments: &Arguments) -> Result<Report> {
    let work = arguments.program.folder()?;
    let store = ImageStore::open(work.path().join("source"))?;
    let found = Command::new(&arguments.skopeo).arg("--version").output().ok();
    let found = found.filter(|found| found.status.success());
    let theirs = found.as_ref().map(|_| arguments.skopeo.clone());
    let image = image(&store, arguments.size, arguments.layers)?;
    layout::write_folder(&store, &[("v1".to_owned(), image.clone())], &work.path().join("layout"))?;
    store.set(&"localhost/bench:v1".parse()?, &image)?;
    let document = store.document(&image.digest)?;
    let moved = document.parts().iter().map(|part| part.size).sum();
    let ours = std::fs::canonicalize(arguments.program.path()?)?;
    let mut columns = vec![
        ("wall", "wall"),
        ("processor", "processor"),
        ("memory", "memory"),
        ("speed", "speed"),
    ];
    if theirs.is_some() {
        columns.extend([
            ("their-wall", "`skopeo`: wall"),
            ("their-processor", "processor"),
            ("their-memory", "memory"),
            ("wall-ratio", "ours : theirs, wall"),
            ("processor-ratio", "processor"),
            ("memory-ratio", "memory"),
        ]);
    }
    let contest = ImageComparison { ours, theirs, rounds: arguments.rounds.max(1), work, moved };
    let mut table = Table::new("moves", "work", &columns);
    contest.push(&mut table).await?;
    contest.pull(&store, &mut table).await?;
    contest.unpack(arguments.size, &mut table)?;
    let mut report = Report::default();
    report.fact("moved", Figure::size(moved));
    report.fact("files", Figure::size(arguments.size * 1_000_000));
    if let Some(found) = found {
        report.fact("skopeo", String::from_utf8_lossy(&found.stdout).trim().to_owned());
    }
    report.table(table)?;
    Ok(report)
}

impl ImageComparison {
    fn path(&self, name: &str) -> String {
        self.work.path().join(name).display().to_string()
    }

    /// Runs a program with these arguments on a blocking thread, since the registry serves in this
    /// process.
    async fn cost(&self, program: &Path, words: &[&str]) -> Result<Cost> {
        let (program, folder) = (program.to_owned(), self.work.path().to_owned());
        let words: Vec<String> = words.iter().map(|&word| word.to_owned()).collect();
        tokio::task::spawn_blocking(move || child::run(&program, &words, &folder)).await?
    }

    async fn push(&self, table: &mut Table) -> Result<()> {
        let (mut ours, mut theirs) = (Vec::new(), Vec::new());
        let (source, layout) = (self.path("source"), format!("oci:{}:v1", self.path("layout")));
        for round in 0..self.rounds {
            for mine in [true, false] {
                let folder = self.work.path().join(format!("push-{round}-{mine}"));
                let domain = serve(ImageStore::open(&folder)?).await?;
                if mine {
                    let target = format!("{domain}/bench:v1");
                    let words =
                        ["image", "push", "--store", &source, "localhost/bench:v1", &target];
                    ours.push(self.cost(&self.ours, &words).await.context("mainstay")?);
                } else if let Some(skopeo) = &self.theirs {
                    let target = format!("docker://{domain}/bench:v1");
                    let words =
                        ["--insecure-policy", "copy", "--dest-tls-verify=false", &layout, &target];
                    theirs.push(self.cost(skopeo, &words).await.context("skopeo")?);
                }
                std::fs::remove_dir_all(&folder)?;
            }
        }
        self.row(table, "push", self.moved, &ours, &theirs);
        Ok(())
    }

    async fn pull(&self, store: &ImageStore, table: &mut Table) -> Result<()> {
        let (mut ours, mut theirs) = (Vec::new(), Vec::new());
        let domain = serve(store.clone()).await?;
        let image = store.resolve(&"localhost/bench:v1".parse()?)?.context("the image is gone")?;
        let reference = format!("{domain}/bench:v1");
        store.set(&reference.parse()?, &image)?;
        for round in 0..self.rounds {
            for mine in [true, false] {
                let folder = self.path(&format!("pull-{round}-{mine}"));
                if mine {
                    let words = ["image", "pull", "--store", &folder, &reference];
                    ours.push(self.cost(&self.ours, &words).await.context("mainstay")?);
                } else if let Some(skopeo) = &self.theirs {
                    let (source, target) =
                        (format!("docker://{reference}"), format!("oci:{folder}:v1"));
                    let words =
                        ["--insecure-policy", "copy", "--src-tls-verify=false", &source, &target];
                    theirs.push(self.cost(skopeo, &words).await.context("skopeo")?);
                } else {
                    continue;
                }
                std::fs::remove_dir_all(&folder)?;
            }
        }
        self.row(table, "pull", self.moved, &ours, &theirs);
        Ok(())
    }

    /// Measures unpacking an image of the store, relative to the size of its files.
    fn unpack(&self, size: u64, table: &mut Table) -> Result<()> {
        let (source, mut ours) = (self.path("source"), Vec::new());
        for round in 0..self.rounds {
            let folder = self.path(&format!("unpack-{round}"));
            let words =
                ["image", "unpack", "--store", &source, "store:localhost/bench:v1", &folder];
            let words = words.map(str::to_owned);
            ours.push(child::run(&self.ours, &words, self.work.path()).context("mainstay")?);
            std::fs::remove_dir_all(&folder)?;
        }
        self.row(table, "unpack", size * 1_000_000, &ours, &[]);
        Ok(())
    }

    /// Adds the row of a command that transfers so many bytes.
    fn row(&self, table: &mut Table, work: &str, bytes: u64, ours: &[Cost], theirs: &[Cost]) {
        let Some(ours) = Cost::of_rounds(ours) else { return };
        let mut cells = ours.cells().to_vec();
        cells.push(Figure::speed(bytes, ours.wall).into());
        if self.theirs.is_some() {
            match Cost::of_rounds(theirs) {
                Some(theirs) => {
                    cells.extend(theirs.cells());
                    cells.extend(ours.ratio_to(theirs));
                }
                None => cells.extend(std::iter::repeat_n(Cell::Nothing, 6)),
            }
        }
        table.row(work, work, cells);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn generated_image_is_reproducible() {
        let folder = tempfile::tempdir().unwrap();
        let make = |name: &str| {
            let store = ImageStore::open(folder.path().join(name)).unwrap();
            image(&store, 4, 2).unwrap()
        };
        assert_eq!(make("a"), make("b"));
        let mut bytes = Vec::new();
        assert_eq!(
            ContentGenerator::new(1, true).read_to_end(&mut bytes).unwrap() as u64,
            FILE_SIZE
        );
        assert!(bytes.starts_with(b"- name: kiwi.v1."));
    }
}
