//! Image transfer from a location to another.

use super::{
    access::{Mirrors, RegistryAccess, TrustArguments},
    failure,
    location::{FileFormat, Location},
};
use clap::Args;
use mainstay_cause::Cause;
use mainstay_command::exit::CommandFailure;
use mainstay_command::io::CommandIo;
use mainstay_command::text::escape_controls;
use mainstay_image::{
    fetch::Fetcher,
    layout::{self, NamedImage},
    manifest::{DEEPEST_INDEX, Descriptor, ImageDocument},
    mirror::MirrorRules,
    platform::Platform,
    policy::SignaturePolicy,
    reference::ImageReference,
    registry::{ImageClient, ImageSelection, Progress},
    store::ImageStore,
};
use std::{fs::File, io::Write as _, path::PathBuf, sync::Arc};

/// Which images of an index are meant.
#[derive(Args, Debug)]
pub(crate) struct Platforms {
    /// The image for this platform, OS/ARCH or OS/ARCH/VARIANT.
    #[arg(long, value_name = "PLATFORM", conflicts_with = "all_platforms")]
    pub(super) platform: Option<Platform>,
    /// The images for all platforms.
    #[arg(long)]
    pub(super) all_platforms: bool,
}

impl Platforms {
    /// The wanted images: this machine's platform by default.
    pub(super) fn or_host(&self) -> ImageSelection {
        match &self.platform {
            Some(platform) => ImageSelection::Platform(platform.clone()),
            None if self.all_platforms => ImageSelection::All,
            None => ImageSelection::Platform(Platform::host()),
        }
    }

    /// The wanted images: all platforms by default.
    pub(super) fn or_all(&self) -> ImageSelection {
        self.platform.clone().map_or(ImageSelection::All, ImageSelection::Platform)
    }
}

/// Fetches and delivers images.
pub(crate) struct ImageTransfer<'a> {
    pub(super) client: ImageClient,
    pub(super) registry_access: &'a RegistryAccess,
    pub(super) rules: MirrorRules,
    policy: SignaturePolicy,
    progress: Arc<Progress>,
    folder: PathBuf,
}

impl<'a> ImageTransfer<'a> {
    /// Reads the files that the options name. Without mirrors and policy.
    pub(crate) fn new(
        registry_access: &'a RegistryAccess,
        io: &CommandIo<'_>,
    ) -> Result<Self, CommandFailure> {
        let settings = registry_access.settings(io)?;
        let progress = Arc::clone(&settings.progress);
        let client = RegistryAccess::client(settings)?;
        let (rules, policy) = (MirrorRules::default(), SignaturePolicy::accept_anything());
        Ok(Self { client, registry_access, rules, policy, progress, folder: io.folder.clone() })
    }

    /// Adds mirror rules.
    pub(super) fn with_mirrors(
        mut self,
        mirrors: &Mirrors,
        io: &CommandIo<'_>,
    ) -> Result<Self, CommandFailure> {
        self.rules = mirrors.rules(self.registry_access, io)?;
        Ok(self)
    }

    /// A transfer with mirrors that only accepts images of the policy.
    pub(super) fn with_policy(
        trust: &'a TrustArguments,
        io: &CommandIo<'_>,
    ) -> Result<Self, CommandFailure> {
        let transfer = Self::new(&trust.registry_access, io)?;
        let policy = trust.policy(io)?;
        let looking = transfer.with_mirrors(&trust.mirrors, io)?;
        Ok(Self { policy, ..looking })
    }

    /// The progress, unless `--quiet` is set.
    pub(crate) fn progress_to_show(&self) -> Option<&Progress> {
        Some(&*self.progress).filter(|_| !self.registry_access.quiet)
    }

    /// Pulls an image into a store under its name. Returns the tag's descriptor, and the image for the
    /// platform if one is wanted.
    pub(super) async fn pull(
        &self,
        store: &ImageStore,
        reference: &ImageReference,
        want: &ImageSelection,
    ) -> Result<(Descriptor, Option<Descriptor>), CommandFailure> {
        let what = format!("{reference} cannot be pulled");
        let security = self.registry_access.security(reference);
        let fetcher = Fetcher {
            client: self.client.clone(),
            rules: self.rules.clone(),
            policy: self.policy.clone(),
            store: store.clone(),
            security,
        };
        let pulled = fetcher.fetch(reference, want).await;
        let pulled = pulled.map_err(|error| failure::fetch(&what, &error))?;
        Ok((pulled.top, pulled.image))
    }

    /// Fetches an image into a store; returns its descriptor there.
    pub(super) async fn obtain(
        &self,
        store: &ImageStore,
        source: &Location,
        want: &ImageSelection,
    ) -> Result<Descriptor, CommandFailure> {
        match source {
            Location::Registry(reference) => {
                let known = store.resolve(reference);
                let known =
                    known.map_err(|error| failure::store("the store cannot be read", &error))?;
                let (top, image) = self.pull(store, reference, want).await?;
                if known.is_none() {
                    // The pull was only for this transfer, so the name is removed again.
                    let _ = store.forget(reference);
                }
                Ok(image.unwrap_or(top))
            }
            Location::Store(reference) => {
                let found = find_in_store(store, reference)?;
                select_platform(store, &source.to_string(), found, want)
            }
            Location::File { path, name, .. } => {
                let what = format!("{source} cannot be read");
                let (opened, path) = (store.clone(), self.folder.join(path));
                let images = blocking(move || layout::read(&opened, &path)).await?;
                let images = images.map_err(|error| failure::layout(&what, &error))?;
                let found = select_named_image(source, images, name.as_deref())?;
                select_platform(store, &source.to_string(), found, want)
            }
        }
    }

    /// Delivers an image of a store to a location. In the store itself, this tags it.
    pub(crate) async fn deliver(
        &self,
        store: &ImageStore,
        image: &Descriptor,
        target: &Location,
    ) -> Result<(), CommandFailure> {
        let what = format!("{target} cannot be written");
        match target {
            Location::Registry(reference) => {
                let security = self.registry_access.security(reference);
                let pushed = self.client.push(store, image, reference, security).await;
                pushed.map_err(|error| {
                    failure::registry(&format!("{reference} cannot be pushed"), &error)
                })
            }
            Location::Store(reference) => {
                store.set(reference, image).map_err(|error| failure::store(&what, &error))
            }
            Location::File { form, path, name } => {
                let name = name.clone().unwrap_or_default();
                let (store, mut image) = (store.clone(), image.clone());
                let (form, path) = (*form, self.folder.join(path));
                // Annotations from an index do not belong to the image.
                image.annotations.clear();
                let written = blocking(move || write(&store, form, &path, name, image)).await?;
                written.map_err(|error| failure::layout(&what, &error))
            }
        }
    }
}

fn write(
    store: &ImageStore,
    form: FileFormat,
    path: &std::path::Path,
    name: String,
    image: Descriptor,
) -> Result<(), layout::LayoutError> {
    if form == FileFormat::Layout {
        return layout::put_folder(store, &[(name, image)], path);
    }
    if path.symlink_metadata().is_ok() {
        return Err(layout::LayoutError::Exists(path.to_owned()));
    }
    let failed =
        |what| move |source| layout::LayoutError::Io { what, path: path.to_owned(), source };
    let parent = path.parent().filter(|parent| *parent != std::path::Path::new(""));
    let parent = parent.unwrap_or_else(|| std::path::Path::new("."));
    // Written to a temporary file: a file with the target's name is always complete.
    let mut temporary = tempfile::Builder::new()
        .prefix(".mainstay-")
        .tempfile_in(parent)
        .map_err(failed("cannot create a file in"))?;
    let out: &mut File = temporary.as_file_mut();
    if form == FileFormat::Docker {
        let names = Some(name).filter(|name| !name.is_empty()).into_iter().collect();
        layout::write_docker_archive(store, &[(names, image)], &mut *out)?;
    } else {
        layout::write_archive(store, &[(name, image)], &mut *out)?;
    }
    out.flush().and_then(|()| out.sync_all()).map_err(failed("cannot write"))?;
    make_readable(out).map_err(failed("cannot write"))?;
    temporary.persist_noclobber(path).map_err(|error| failed("cannot create")(error.error))?;
    Ok(())
}

/// Temporary files are readable by their owner only; archives are not.
fn make_readable(file: &File) -> std::io::Result<()> {
    use std::os::unix::fs::PermissionsExt as _;
    file.set_permissions(std::fs::Permissions::from_mode(0o644))
}

/// Runs slow file operations on a blocking thread, so that Ctrl-C still works.
pub(super) async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, CommandFailure> {
    tokio::task::spawn_blocking(work).await.map_err(|error| {
        CommandFailure::from(
            Cause::new("the work ended early").because(Cause::new(error.to_string())),
        )
    })
}

/// Resolves a name in a store.
pub(super) fn find_in_store(
    store: &ImageStore,
    reference: &ImageReference,
) -> Result<Descriptor, CommandFailure> {
    let found = store.resolve(reference);
    let found = found.map_err(|error| failure::store("the store cannot be read", &error))?;
    found.ok_or_else(|| {
        let cause = Cause::new(format!("there is no image {reference} in the store"));
        let cause = cause.remedy("list them with: mainstay image list");
        CommandFailure::usage(
            cause.remedy(format!("pull it first: mainstay image pull {reference}")),
        )
    })
}

/// Selects the image of a layout or an archive by name.
fn select_named_image(
    source: &Location,
    mut images: Vec<NamedImage>,
    name: Option<&str>,
) -> Result<Descriptor, CommandFailure> {
    let has_name = |descriptor: &NamedImage, wanted: &str| {
        descriptor.names.iter().any(|known| {
            let tag = || known.parse::<ImageReference>().ok().filter(|_| known.contains('/'));
            known == wanted || tag().is_some_and(|known| known.tag() == Some(wanted))
        })
    };
    match name {
        Some(name) => {
            if let Some(place) = images.iter().position(|descriptor| has_name(descriptor, name)) {
                return Ok(images.swap_remove(place).descriptor);
            }
        }
        None if images.len() == 1 => return Ok(images.swap_remove(0).descriptor),
        None => {}
    }
    let names: Vec<String> = images
        .iter()
        .flat_map(|descriptor| descriptor.names.iter())
        .map(|name| escape_controls(name))
        .collect();
    let what = match (images.is_empty(), name) {
        (true, _) => format!("{source} has no image"),
        (false, Some(_)) => format!("{source} does not exist"),
        (false, None) => format!("{source} has {} images", images.len()),
    };
    let cause = Cause::new(what);
    Err(CommandFailure::usage(if names.is_empty() {
        cause
    } else {
        cause.remedy(format!("name one of them: {}", names.join(", ")))
    }))
}

/// Selects the image for a platform from a possible index.
fn select_platform(
    store: &ImageStore,
    source: &str,
    top: Descriptor,
    want: &ImageSelection,
) -> Result<Descriptor, CommandFailure> {
    let ImageSelection::Platform(platform) = want else { return Ok(top) };
    let mut image = top;
    for _ in 0..=DEEPEST_INDEX {
        let document = store.document_of(&image);
        let document = document
            .map_err(|error| failure::store(&format!("{source} cannot be read"), &error))?;
        let ImageDocument::Index(index) = document else { return Ok(image) };
        let Some(descriptor) = index.choose(platform) else {
            let offered =
                index.manifests.iter().filter_map(|descriptor| descriptor.platform.as_ref());
            let offered: Vec<String> = offered
                .take(50)
                .map(|descriptor| escape_controls(&descriptor.to_string()))
                .collect();
            let cause = Cause::new(format!("{source} has no image for {platform}"));
            let cause = cause.because(Cause::new(format!("it has {}", offered.join(", "))));
            return Err(CommandFailure::usage(
                cause.remedy("name one that it has with --platform OS/ARCH"),
            ));
        };
        image = descriptor.clone();
    }
    Err(Cause::new(format!("the indexes of {source} are nested too deeply")).into())
}
