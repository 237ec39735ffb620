//! Common parts of `bundle build` and `catalog build`.

use super::{
    access::{RegistryAccess, StoreFolder},
    content::{BuildOptions, BuiltImage},
    copy::working_store,
    location::Location,
    location_value, print, progress,
    transfer::ImageTransfer,
};
use crate::validation::{self, Finding};
use clap::Args;
use mainstay_cause::{Cause, FileLocation};
use mainstay_command::exit::CommandFailure;
use mainstay_command::io::CommandIo;
use mainstay_command::text::{Format, escape_controls};
use mainstay_image::{platform::Platform, store::ImageStore};
use serde_json::json;
use std::collections::BTreeMap;

/// Arguments of both.
#[derive(Args, Debug)]
pub(crate) struct BuildArguments {
    /// Target of the image: REGISTRY/NAME:TAG, oci:DIR[:TAG], oci-archive:FILE[:TAG],
    /// docker-archive:FILE[:NAME] or store:NAME:TAG.
    #[arg(value_name = "TO")]
    target: String,
    /// Build the image even if the folder has errors.
    #[arg(long)]
    force: bool,
    /// Additional label of the image (repeatable).
    #[arg(long, value_name = "KEY=VALUE")]
    label: Vec<String>,
    /// Platform of the image, OS/ARCH; several platforms make an index (repeatable) [default: for a
    /// bundle linux/amd64, for a catalog an index of amd64, arm64, ppc64le and s390x].
    #[arg(long, value_name = "PLATFORM")]
    platform: Vec<Platform>,
    #[command(flatten)]
    store: StoreFolder,
    /// Output format.
    #[arg(short, long, value_enum, value_name = "FORMAT", default_value_t = Format::Text)]
    output: Format,
    #[command(flatten)]
    registry_access: RegistryAccess,
}

/// The parsed arguments of a build.
pub(crate) struct BuildRequest {
    target: Location,
    force: bool,
    pub(crate) options: BuildOptions,
}

impl BuildArguments {
    /// Parses the arguments, before any folder is read.
    pub(crate) fn read(&self) -> Result<BuildRequest, CommandFailure> {
        let target = Location::read(&self.target).map_err(CommandFailure::usage)?;
        let mut labels = BTreeMap::new();
        for text in &self.label {
            let Some((key, value)) = text.split_once('=').filter(|(key, _)| !key.is_empty()) else {
                let cause = Cause::new(format!("`{}` is not a label", escape_controls(text)));
                return Err(CommandFailure::usage(cause.remedy("write it as KEY=VALUE")));
            };
            labels.insert(key.to_owned(), value.to_owned());
        }
        let mut platforms: Vec<Platform> = Vec::new();
        for platform in &self.platform {
            if !platforms.contains(platform) {
                platforms.push(platform.clone());
            }
        }
        Ok(BuildRequest { target, force: self.force, options: BuildOptions { labels, platforms } })
    }
}

/// Prints the findings about a folder. Errors refuse the build, unless it is forced.
pub(crate) fn check_findings(
    request: &BuildRequest,
    io: &mut CommandIo<'_>,
    what: &str,
    argument: &str,
    findings: &[Finding],
) -> Result<(), CommandFailure> {
    if !findings.is_empty() {
        // If the findings cannot be written, the exit code reports them.
        let _ = io.stderr.write_all(validation::text(findings).as_bytes());
    }
    let [errors, _] = validation::totals(findings);
    if errors > 0 && !request.force {
        let cause = Cause::new(format!("the {what} has errors"))
            .at(FileLocation::file(escape_controls(argument)));
        let cause = cause.remedy("correct them").remedy("build the image anyway with --force");
        return Err(cause.into());
    }
    Ok(())
}

/// Builds an image, delivers it to its target and prints the result.
pub(crate) async fn run(
    arguments: &BuildArguments,
    request: &BuildRequest,
    io: &mut CommandIo<'_>,
    build: impl FnOnce(&ImageStore) -> Result<BuiltImage, CommandFailure>,
) -> Result<(), CommandFailure> {
    let target = &request.target;
    let (store, _scratch) = working_store(&arguments.store, &[target], io)?;
    let transfer = ImageTransfer::new(&arguments.registry_access, io)?;
    let built = build(&store)?;
    let delivery = transfer.deliver(&store, &built.image, target);
    progress::transfer(io, transfer.progress_to_show(), delivery).await?;
    let place = target.to_string();
    let mut value = location_value(&place, &built.image);
    let platforms: Vec<String> = built.platforms.iter().map(ToString::to_string).collect();
    value["platforms"] = json!(platforms);
    value["labels"] = json!(built.labels);
    let text = || format!("{place} {}\n", built.image.digest);
    print(io, arguments.output, &value, text);
    Ok(())
}
