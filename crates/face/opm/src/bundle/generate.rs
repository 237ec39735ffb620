//! `opm alpha bundle generate` and `build`: the annotations and the Dockerfile of a bundle.

use super::super::call::{Call, CommandIo, Failure};
use super::super::error::PathError;
use super::super::{go, log, tool};
use super::error::{AnnotationError, GenerateError};
use super::infer;
use mainstay_bundle::validate::media_type;
use mainstay_bundle::{BundleFolder, Limits};
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;

const PREFIX: &str = "operators.operatorframework.io.bundle.";
const ANNOTATIONS: &str = "annotations.yaml";
const DOCKERFILE: &str = "bundle.Dockerfile";

pub(super) fn run(call: &mut Call<'_, '_>) -> Result<(), Failure> {
    write(call, true).map_err(Failure::usage)
}

pub(super) fn build(call: &mut Call<'_, '_>) -> Result<(), Failure> {
    write(call, call.flags.is_on("overwrite")).map_err(Failure::usage)?;
    log::info(call.io, "Building bundle image");
    let (builder, tag) = (call.flags.text("image-builder"), call.flags.text("tag"));
    let arguments: &[&str] = match builder {
        "docker" | "podman" => &["build", "-f", DOCKERFILE, "-t", tag, "."],
        "buildah" => &["bud", "--format=docker", "-f", DOCKERFILE, "-t", tag, "."],
        other => return Err(Failure::Usage(format!("{other} is not supported image builder"))),
    };
    let ended = match tool::run_program(call.io, builder, arguments) {
        Err(ended) => Some(ended.why),
        Ok(output) => {
            // An error means that the reader is gone.
            let _ = call.io.stdout.write_all(&output.stdout);
            let _ = call.io.stderr.write_all(&output.stderr);
            tool::exit_reason(&output)
        }
    };
    let Some(why) = ended else { return Ok(()) };
    let words: Vec<String> =
        std::iter::once(builder).chain(arguments.iter().copied()).map(go::quote).collect();
    Err(Failure::Usage(format!("Failed to exec []string{{{}}}: {why}", words.join(", "))))
}

/// The labels of the image of a bundle.
struct Labels {
    media_type: &'static str,
    package: String,
    channels: String,
    default: String,
}

impl Labels {
    /// All labels, in the order of the Dockerfile.
    fn all(&self) -> Vec<(String, &str)> {
        let mut all = vec![
            ("mediatype.v1", self.media_type),
            ("manifests.v1", "manifests/"),
            ("metadata.v1", "metadata/"),
            ("package.v1", &*self.package),
            ("channels.v1", &*self.channels),
        ];
        if !self.default.is_empty() {
            all.push(("channel.default.v1", &*self.default));
        }
        all.into_iter().map(|(key, value)| (format!("{PREFIX}{key}"), value)).collect()
    }

    fn annotations(&self) -> String {
        let sorted: BTreeMap<String, &str> = self.all().into_iter().collect();
        let fields: Map<String, Value> =
            sorted.into_iter().map(|(key, value)| (key, value.into())).collect();
        mainstay_yaml::to_string(&json!({ "annotations": fields }))
    }

    fn dockerfile(&self, base: &str, manifests: &str, metadata: &str) -> String {
        let mut text = format!("FROM {base}\n\n");
        for (key, value) in self.all() {
            // Writing to a string cannot fail.
            let _ = writeln!(text, "LABEL {key}={value}");
        }
        if !self.default.is_empty() {
            text.push('\n');
        }
        text + &format!("COPY {manifests} /manifests/\nCOPY {metadata} /metadata/\n")
    }
}

fn write(call: &mut Call<'_, '_>, overwrite: bool) -> Result<(), GenerateError> {
    let flags = &call.flags;
    let working = call.io.folder.to_string_lossy().into_owned();
    let absolute = |path: &str| {
        if path.starts_with('/') {
            go::clean(path)
        } else {
            go::clean(&format!("{working}/{path}"))
        }
    };
    let folder = absolute(flags.text("directory"));
    let output = Some(flags.text("output-dir")).filter(|folder| !folder.is_empty()).map(absolute);
    let mut labels = Labels {
        media_type: "",
        package: flags.text("package").to_owned(),
        channels: flags.text("channels").to_owned(),
        default: flags.text("default").to_owned(),
    };
    let base = flags.text("base-image").to_owned();
    if let Err(error) = fs::metadata(&folder)
        && error.kind() == std::io::ErrorKind::NotFound
    {
        return Err(PathError::of("stat", folder)(error).into());
    }
    labels.media_type = media_type(&BundleFolder::new(&folder), "", &folder, &Limits::default())?;
    let io = &mut *call.io;
    infer_missing(io, &folder, &mut labels)?;

    log::info(io, "Building annotations.yaml");
    let (above, manifests) = match output {
        None => (go::clean(&format!("{folder}/..")), folder.clone()),
        Some(output) => {
            log::info(io, "Generating output manifests directory");
            let manifests = go::join(&output, "manifests");
            copy_manifests(&folder, &manifests, overwrite)?;
            (output, manifests)
        }
    };
    let metadata = go::join(&above, "metadata");
    let content = labels.annotations();
    match fs::read(go::join(&metadata, ANNOTATIONS)) {
        Ok(existing) if !overwrite => {
            log::info(io, "An annotations.yaml already exists in the directory: metadata/");
            log::info(io, "Validating existing annotations.yaml");
            check_annotations(&existing, &labels)?;
        }
        Err(error) if !overwrite && error.kind() != std::io::ErrorKind::NotFound => {
            let path = go::join(&metadata, ANNOTATIONS);
            return Err(PathError::of("open", path)(error).into());
        }
        _ => write_file(io, &metadata, ANNOTATIONS, &content)?,
    }

    log::info(io, "Building Dockerfile");
    let (manifests, metadata) =
        (go::relative(&working, &manifests), go::relative(&working, &metadata));
    let content = labels.dockerfile(&base, &manifests, &metadata);
    if overwrite || !io.resolve_path(DOCKERFILE).exists() {
        return Ok(write_file(io, &working, DOCKERFILE, &content)?);
    }
    let message =
        format!("A bundle.Dockerfile already exists in current working directory: {working}");
    log::info(io, &message);
    Ok(())
}

/// Infers missing package and channels from the package folder.
fn infer_missing(
    io: &mut CommandIo<'_>,
    folder: &str,
    labels: &mut Labels,
) -> Result<(), GenerateError> {
    let missing: Vec<&str> = [("channels", &labels.channels), ("package name", &labels.package)]
        .into_iter()
        .filter(|(_, value)| value.is_empty())
        .map(|(name, _)| name)
        .collect();
    if missing.is_empty() {
        return Ok(());
    }
    let missing = missing.join(" and ");
    let message = format!(
        "Bundle {missing} information not provided, inferring from parent package directory"
    );
    log::info(io, &message);
    let found = infer::infer(io, folder)
        .map_err(|source| GenerateError::Infer { folder: folder.to_owned(), source })?;
    if labels.channels.is_empty() {
        labels.channels = found.channels.join(",");
        if labels.channels.is_empty() {
            return Err(GenerateError::NoChannels);
        }
        log::info(io, &format!("Inferred channels: {}", labels.channels));
    }
    if labels.package.is_empty() {
        labels.package = found.package;
        log::info(io, &format!("Inferred package name: {}", labels.package));
    }
    if labels.default.is_empty() {
        labels.default = found.default;
        log::info(io, &format!("Inferred default channel: {}", labels.default));
    }
    Ok(())
}

/// Checks that existing annotations have the expected values; more annotations are allowed.
fn check_annotations(existing: &[u8], labels: &Labels) -> Result<(), GenerateError> {
    let options = mainstay_yaml::Options::default();
    let found = mainstay_yaml::one(existing, &options).map_err(GenerateError::Annotations)?;
    let text = |key: &str| match found["annotations"].get(key)? {
        Value::String(text) => Some(text.clone()),
        Value::Null => Some(String::new()),
        other => Some(other.to_string()),
    };
    let wanted: BTreeMap<String, &str> = labels.all().into_iter().collect();
    let errors: Vec<AnnotationError> = wanted
        .into_iter()
        .filter_map(|(key, expected)| match text(&key) {
            None => Some(AnnotationError::Missing { key }),
            Some(found) if found != expected => {
                let expected = expected.to_owned();
                Some(AnnotationError::OtherValue { key, expected, found })
            }
            Some(_) => None,
        })
        .collect();
    if errors.is_empty() { Ok(()) } else { Err(GenerateError::OtherAnnotations(errors)) }
}

/// Writes a file, and creates its folder if it is missing.
fn write_file(
    io: &mut CommandIo<'_>,
    folder: &str,
    file: &str,
    content: &str,
) -> Result<(), PathError> {
    if !fs::exists(folder).unwrap_or(true) {
        create_folder(folder)?;
    }
    log::info(io, &format!("Writing {file} in {folder}"));
    let path = go::join(folder, file);
    fs::write(&path, content).map_err(PathError::of("open", path))
}

fn create_folder(folder: &str) -> Result<(), PathError> {
    fs::create_dir_all(folder).map_err(PathError::of("mkdir", folder))
}

/// Copies manifests. Like upstream, the files of a sub-folder go into a folder with the name of its
/// parent.
fn copy_manifests(from: &str, to: &str, overwrite: bool) -> Result<(), PathError> {
    let mut entries: Vec<_> =
        fs::read_dir(from).map_err(PathError::of("open", from))?.flatten().collect();
    entries.sort_by_key(fs::DirEntry::file_name);
    if !fs::exists(to).unwrap_or(true) {
        create_folder(to)?;
    }
    for entry in entries {
        let name = entry.file_name().to_string_lossy().into_owned();
        let source = go::join(from, &name);
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            let own = from.rsplit('/').next().unwrap_or_default();
            copy_manifests(&source, &go::join(to, own), overwrite)?;
            continue;
        }
        let target = go::join(to, &name);
        if fs::exists(&target).unwrap_or(false) && !overwrite {
            continue;
        }
        fs::copy(&source, &target).map_err(PathError::of("open", source))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_default_channel_is_followed_by_an_empty_line() {
        let mut labels = Labels {
            media_type: "plain",
            package: "kiwi".to_owned(),
            channels: "y".to_owned(),
            default: String::new(),
        };
        assert!(labels.annotations().contains("channels.v1: \"y\"\n"));
        let text = labels.dockerfile("scratch", "m", "n");
        assert!(text.ends_with("channels.v1=y\nCOPY m /manifests/\nCOPY n /metadata/\n"), "{text}");
        labels.default = "y".to_owned();
        let text = labels.dockerfile("scratch", "m", "n");
        assert!(
            text.ends_with("default.v1=y\n\nCOPY m /manifests/\nCOPY n /metadata/\n"),
            "{text}"
        );
    }
}
