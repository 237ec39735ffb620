//! `mainstay image`: transfers images of operator content between registries, files and a store.
//!
//! ```text
//! registry, layout, archive ─► copy ─► registry, layout, archive
//!              │                              ▲
//!              └──► pull ──► store ──► push ──┘
//!                              └──► list, remove, gc
//! any of them ─► inspect, unpack
//! ```
//!
//! A name alone is one in a registry. `bundle build` and `catalog build` build images of folders
//! ([`content`]) and deliver them as `copy` does.

mod access;
pub(crate) mod building;
pub mod bundle_content;
pub mod content;
mod copy;
mod failure;
mod inspect;
mod local_store;
mod location;
mod progress;
mod pull_push;
mod tags;
mod transfer;
mod unpack;

pub use access::{StoreFolder, TrustArguments};

use crate::examples;
use clap::{Args, Subcommand};
use mainstay_command::exit::{CommandFailure, ExitStatus};
use mainstay_command::io::CommandIo;
use mainstay_command::io::finish;
use mainstay_command::text::{Format, format_output};
use mainstay_image::manifest::Descriptor;
use serde_json::{Value, json};

/// Arguments of `image`.
#[derive(Args, Debug)]
pub struct ImageArguments {
    #[command(subcommand)]
    command: Command,
}

const PLACES: &str = "Locations of images:
  REGISTRY/NAME[:TAG][@DIGEST]   a registry; the prefix docker:// is allowed
  store:NAME[:TAG]               the local image store
  oci:DIR[:TAG]                  an OCI image layout
  oci-archive:FILE[:TAG]         an OCI image layout in a tar archive
  docker-archive:FILE[:NAME]     an archive of `docker save`";

/// Examples, with the forms of locations.
fn with_places(examples: &str) -> String {
    format!("{examples}\n\n{PLACES}")
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Pull images from registries into the store.
    ///
    /// Content that the store has is not pulled again. An interrupted pull continues where it stopped.
    #[command(after_help = examples::IMAGE_PULL)]
    Pull(pull_push::Pull),
    /// Push an image of the store to a registry.
    #[command(after_help = examples::IMAGE_PUSH)]
    Push(pull_push::Push),
    /// Copy an image between registries, files and the store, for all its platforms.
    #[command(after_help = examples::IMAGE_COPY, after_long_help = with_places(examples::IMAGE_COPY))]
    Copy(copy::Arguments),
    /// Show the platforms, labels and layers of an image.
    #[command(visible_alias = "show", after_help = examples::IMAGE_INSPECT, after_long_help = with_places(examples::IMAGE_INSPECT))]
    Inspect(inspect::Arguments),
    /// Unpack an image into a new folder.
    ///
    /// The command writes nothing outside the folder. It refuses entries and links that lead out of the
    /// folder, and images that unpack to an excessive size.
    #[command(after_help = examples::IMAGE_UNPACK, after_long_help = with_places(examples::IMAGE_UNPACK))]
    Unpack(unpack::Arguments),
    /// List the tags of a repository in a registry.
    #[command(after_help = examples::IMAGE_TAGS)]
    Tags(tags::Arguments),
    /// List the images of the store.
    #[command(visible_alias = "ls", after_help = examples::IMAGE_LIST)]
    List(local_store::List),
    /// Remove images from the store; `gc` frees their space.
    #[command(visible_alias = "rm", after_help = examples::IMAGE_REMOVE)]
    Remove(local_store::Remove),
    /// Remove content that no image needs from the store.
    #[command(after_help = examples::IMAGE_GC)]
    Gc(local_store::Gc),
}

/// Runs one command.
pub async fn run(arguments: ImageArguments, io: &mut CommandIo<'_>) -> ExitStatus {
    finish(io, async |io| run_command(arguments, io).await.map(|()| ExitStatus::Done)).await
}

// Futures of transfers are large: each is boxed, so that the other commands do not carry its size.
async fn run_command(
    arguments: ImageArguments,
    io: &mut CommandIo<'_>,
) -> Result<(), CommandFailure> {
    match arguments.command {
        Command::Pull(arguments) => Box::pin(pull_push::pull(&arguments, io)).await,
        Command::Push(arguments) => Box::pin(pull_push::push(&arguments, io)).await,
        Command::Copy(arguments) => Box::pin(copy::run(&arguments, io)).await,
        Command::Inspect(arguments) => Box::pin(inspect::run(&arguments, io)).await,
        Command::Unpack(arguments) => Box::pin(unpack::run(&arguments, io)).await,
        Command::Tags(arguments) => Box::pin(tags::run(&arguments, io)).await,
        Command::List(arguments) => local_store::list(&arguments, io),
        Command::Remove(arguments) => local_store::remove(&arguments, io),
        Command::Gc(arguments) => local_store::gc(&arguments, io),
    }
}

/// Prints a value as JSON or YAML, or a text.
fn print(io: &mut CommandIo<'_>, format: Format, value: &Value, text: impl FnOnce() -> String) {
    io.print(&format_output(format, value, text));
}

/// The JSON value of a location and its image, as every delivering command prints it.
fn location_value(place: &str, image: &Descriptor) -> Value {
    json!({
        "image": place,
        "digest": image.digest.to_string(),
        "mediaType": image.media_type,
    })
}
