//! `mainstay image tags`: lists the tags of a repository.

use super::{
    access::{Mirrors, RegistryAccess},
    failure,
    location::reference,
    print, progress,
    transfer::ImageTransfer,
};
use clap::Args;
use mainstay_command::exit::CommandFailure;
use mainstay_command::io::CommandIo;
use mainstay_command::text::{Format, escape_controls};
use mainstay_image::fetch::FetchError;
use mainstay_image::mirror::MirrorError;
use serde_json::json;

/// Arguments of `tags`.
#[derive(Args, Debug)]
pub(super) struct Arguments {
    /// The repository, REGISTRY/NAME.
    #[arg(value_name = "REPOSITORY")]
    repository: String,
    /// Output format.
    #[arg(short, long, value_enum, value_name = "FORMAT", default_value_t = Format::Text)]
    output: Format,
    #[command(flatten)]
    registry_access: RegistryAccess,
    #[command(flatten)]
    mirrors: Mirrors,
}

pub(super) async fn run(
    arguments: &Arguments,
    io: &mut CommandIo<'_>,
) -> Result<(), CommandFailure> {
    let text = &arguments.repository;
    let repository = reference(text.strip_prefix("docker://").unwrap_or(text));
    let repository = repository.map_err(CommandFailure::usage)?;
    let transfer =
        ImageTransfer::new(&arguments.registry_access, io)?.with_mirrors(&arguments.mirrors, io)?;
    let what = format!("the tags of {} cannot be listed", repository.repository());
    let tags = progress::transfer(io, None, async {
        let security = arguments.registry_access.security(&repository);
        let failed = |error| failure::listing(&what, &FetchError::Mirror(error));
        let mut attempts = Vec::new();
        for source in transfer.rules.sources(&repository, security).map_err(failed)? {
            match transfer.client.tags(&source.reference, source.security).await {
                Ok(tags) => return Ok(tags),
                Err(error) => attempts.push((source.reference.repository(), error)),
            }
        }
        Err(failed(MirrorError::All { reference: repository.to_string(), attempts }))
    })
    .await?;
    let value = json!({"repository": repository.repository(), "tags": tags});
    print(io, arguments.output, &value, || {
        tags.iter().map(|tag| escape_controls(tag) + "\n").collect::<String>()
    });
    Ok(())
}
