//! `mainstay image tags`: what a registry has of a repository.

use super::{
    access::{Mirrors, Reach},
    failure,
    location::reference,
    print,
    ship::Carrier,
    work,
};
use crate::{
    catalog::{Format, Io, plain},
    exit::Failure,
};
use clap::Args;
use mainstay_image::fetch::FetchError;
use mainstay_image::mirror::MirrorError;
use serde_json::json;

/// Arguments of `tags`.
#[derive(Args, Debug)]
pub(super) struct Arguments {
    /// The repository, REGISTRY/NAME.
    #[arg(value_name = "REPOSITORY")]
    repository: String,
    /// How the tags are written.
    #[arg(short, long, value_enum, value_name = "FORMAT", default_value_t = Format::Text)]
    output: Format,
    #[command(flatten)]
    reach: Reach,
    #[command(flatten)]
    mirrors: Mirrors,
}

pub(super) async fn run(arguments: &Arguments, io: &mut Io<'_>) -> Result<(), Failure> {
    let text = &arguments.repository;
    let repository = reference(text.strip_prefix("docker://").unwrap_or(text));
    let repository = repository.map_err(Failure::usage)?;
    let carrier = Carrier::new(&arguments.reach, io)?.looking_in(&arguments.mirrors, io)?;
    let what = format!("the tags of {} cannot be listed", repository.repository());
    let tags = work::transfer(io, None, async {
        let security = arguments.reach.security(&repository);
        let failed = |error| failure::listing(&what, &FetchError::Mirror(error));
        let mut attempts = Vec::new();
        for source in carrier.rules.sources(&repository, security).map_err(failed)? {
            match carrier.client.tags(&source.reference, source.security).await {
                Ok(tags) => return Ok(tags),
                Err(error) => attempts.push((source.reference.repository(), error)),
            }
        }
        Err(failed(MirrorError::All { reference: repository.to_string(), attempts }))
    })
    .await?;
    let value = json!({"repository": repository.repository(), "tags": tags});
    print(io, arguments.output, &value, || {
        tags.iter().map(|tag| plain(tag) + "\n").collect::<String>()
    });
    Ok(())
}
