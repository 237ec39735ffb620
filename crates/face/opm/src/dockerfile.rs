//! `opm generate dockerfile`: writes a Dockerfile for the image of a catalog.

use super::call::{Call, Failure};
use super::command::{Action, Arguments, Command};
use super::flags::Flag;
use super::go;
use std::collections::BTreeMap;
use std::fs::OpenOptions;
use std::io::{ErrorKind, Write};

const IMAGE: &str = "quay.io/operator-framework/opm:latest";

/// The command.
pub(super) fn command() -> Command {
    Command {
        long: "Writes <fbcRootDir>.Dockerfile beside the folder of a file-based catalog.\n\n\
               If the file exists, it stays, and the command fails.\n\
               Of several labels with one key the last one counts. The builder image cannot be \"scratch\".",
        arguments: Arguments::Exactly(1),
        flags: vec![
            Flag::text("base-image", Some('i'), "the base image of the catalog image")
                .with_default(IMAGE),
            Flag::text("binary-image", None, "the base image and builder image")
                .with_default(IMAGE)
                .deprecated("use --base-image instead"),
            Flag::text("builder-image", Some('b'), "the image that the catalog is built in")
                .with_default(IMAGE),
            Flag::list("extra-labels", Some('l'), "labels to add, each as key=value"),
        ],
        exclusive: vec![&["binary-image", "base-image"]],
        action: Some(Action::Sync(run)),
        ..Command::new("dockerfile <fbcRootDir>", "Write a Dockerfile for a file-based catalog")
    }
}

fn run(call: &mut Call<'_, '_>) -> Result<(), Failure> {
    let flags = &call.flags;
    let root = go::clean(call.argument(0));
    let sets_both = flags.has("binary-image");
    let base = flags.text(if sets_both { "binary-image" } else { "base-image" });
    let builder = flags.text("builder-image");
    if builder == "scratch" {
        return Err(Failure::Usage(format!("invalid builder image: {}", go::quote(builder))));
    }
    let builder = if sets_both && !flags.has("builder-image") { base } else { builder };
    let labels = labels(flags.list("extra-labels")).map_err(Failure::usage)?;

    let (parent, name) = match root.rsplit_once('/') {
        Some((parent, name)) => (format!("{parent}/"), name),
        None => (String::new(), &*root),
    };
    let path = format!("{parent}{name}.Dockerfile");
    match std::fs::metadata(call.io.resolve_path(&path)) {
        Ok(_) => {
            return Err(Failure::Fatal(format!("path {}: file already exists", go::quote(&path))));
        }
        Err(error) if error.kind() == ErrorKind::NotFound => {}
        Err(error) => {
            return Err(Failure::Fatal(format!(
                "stat {path}: {}",
                mainstay_gocompat::io_error_text(&error)
            )));
        }
    }
    if !call.io.is_folder(&root).map_err(Failure::usage)? {
        let message = format!("provided root path {} is not a directory", go::quote(&root));
        return Err(Failure::Usage(message));
    }
    let written = |error: std::io::Error, what: &str| {
        format!("{what} {path}: {}", mainstay_gocompat::io_error_text(&error))
    };
    // Exclusively: a dangling link is not followed.
    let mut file = OpenOptions::new()
        .create_new(true)
        .write(true)
        .open(call.io.resolve_path(&path))
        .map_err(|error| Failure::Fatal(written(error, "open")))?;
    if base.is_empty() {
        return Err(Failure::Log("base image is unset".to_owned()));
    }
    if name.is_empty() {
        return Err(Failure::Log("index directory is unset".to_owned()));
    }
    let text = dockerfile(name, base, builder, &labels);
    file.write_all(text.as_bytes()).map_err(|error| {
        // A partial file would block the next attempt.
        let _ = std::fs::remove_file(call.io.resolve_path(&path));
        Failure::Log(written(error, "write"))
    })
}

/// A label has no value.
#[derive(Debug, thiserror::Error)]
#[error("invalid label {}", go::quote(label))]
struct LabelError {
    /// The given text.
    label: String,
}

fn labels(given: &[String]) -> Result<BTreeMap<&str, &str>, LabelError> {
    let invalid = |label: &String| LabelError { label: label.clone() };
    given.iter().map(|label| label.split_once('=').ok_or_else(|| invalid(label))).collect()
}

/// The Dockerfile, byte for byte as upstream writes it: build systems compare it.
fn dockerfile(name: &str, base: &str, builder: &str, labels: &BTreeMap<&str, &str>) -> String {
    let mut text = format!(
        "# The builder image is expected to contain\n\
         # /bin/opm (with serve subcommand)\n\
         FROM {builder} as builder\n\
         \n\
         # Copy FBC root into image at /configs and pre-populate serve cache\n\
         ADD {name} /configs\n\
         RUN [\"/bin/opm\", \"serve\", \"/configs\", \"--cache-dir=/tmp/cache\", \"--cache-only\"]\n\
         \n\
         FROM {base}\n"
    );
    text += match base {
        "scratch" => {
            "# OLMv0 CatalogSources that use binary-less images must set:\n\
             # spec:\n\
             #   grpcPodConfig:\n\
             #     extractContent:\n\
             #       catalogDir: /configs\n\
             #       cacheDir: /tmp/cache\n"
        }
        _ => {
            "# The base image is expected to contain\n\
             # /bin/opm (with serve subcommand) and /bin/grpc_health_probe\n\
             \n\
             # Configure the entrypoint and command\n\
             ENTRYPOINT [\"/bin/opm\"]\n\
             CMD [\"serve\", \"/configs\", \"--cache-dir=/tmp/cache\"]\n"
        }
    };
    text += "\n\
             COPY --from=builder /configs /configs\n\
             COPY --from=builder /tmp/cache /tmp/cache\n\
             \n\
             # Set FBC-specific label for the location of the FBC root directory\n\
             # in the image\n\
             LABEL operators.operatorframework.io.index.configs.v1=/configs\n";
    if !labels.is_empty() {
        text += "\n# Set other custom labels\n";
    }
    for (key, value) in labels {
        go::push(&mut text, format_args!("LABEL \"{key}\"=\"{value}\"\n"));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_are_sorted_and_the_last_one_counts() {
        let given = ["z=1", "a=b=c", "z=2", "=x"].map(str::to_owned);
        let found: Vec<_> = labels(&given).unwrap().into_iter().collect();
        assert_eq!(found, [("", "x"), ("a", "b=c"), ("z", "2")]);
        let error = labels(&["x".to_owned()]).unwrap_err();
        assert_eq!(error.to_string(), "invalid label \"x\"");
    }

    #[test]
    fn an_empty_base_says_how_the_catalog_is_extracted() {
        let text = dockerfile("c", "scratch", "b", &BTreeMap::from([("k", "v")]));
        assert!(text.contains("\nFROM scratch\n# OLMv0 CatalogSources"), "{text}");
        assert!(!text.contains("ENTRYPOINT"), "{text}");
        assert!(text.ends_with("\n\n# Set other custom labels\nLABEL \"k\"=\"v\"\n"), "{text}");
    }
}
