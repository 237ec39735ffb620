//! Images from where they are, and to where they shall be.

use super::{
    access::{Mirrors, Reach, Trust},
    failure,
    location::{Form, Location},
};
use crate::{
    catalog::{Io, plain},
    exit::Failure,
};
use clap::Args;
use mainstay_cause::Cause;
use mainstay_image::{
    fetch::Fetcher,
    layout::{self, Named},
    manifest::{DEEPEST_INDEX, Descriptor, Document},
    mirror::Rules,
    platform::Platform,
    policy::Policy,
    reference::Reference,
    registry::{Client, Progress, Want},
    store::Store,
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
    /// What is wanted, where this machine's platform is enough.
    pub(super) fn or_host(&self) -> Want {
        match &self.platform {
            Some(platform) => Want::Platform(platform.clone()),
            None if self.all_platforms => Want::All,
            None => Want::Platform(Platform::host()),
        }
    }

    /// What is wanted, where nothing shall be left behind.
    pub(super) fn or_all(&self) -> Want {
        self.platform.clone().map_or(Want::All, Want::Platform)
    }
}

/// Takes images from registries, and brings them there.
pub(crate) struct Carrier<'a> {
    pub(super) client: Client,
    pub(super) reach: &'a Reach,
    pub(super) rules: Rules,
    policy: Policy,
    progress: Arc<Progress>,
    folder: PathBuf,
}

impl<'a> Carrier<'a> {
    /// Reads the files that the options name.
    pub(crate) fn new(reach: &'a Reach, io: &Io<'_>) -> Result<Self, Failure> {
        let settings = reach.settings(io)?;
        let progress = Arc::clone(&settings.progress);
        let client = Reach::client(settings)?;
        let (rules, policy) = (Rules::default(), Policy::accept_anything());
        Ok(Self { client, reach, rules, policy, progress, folder: io.folder.clone() })
    }

    /// The same, which looks in mirrors.
    pub(super) fn looking_in(mut self, mirrors: &Mirrors, io: &Io<'_>) -> Result<Self, Failure> {
        self.rules = mirrors.rules(self.reach, io)?;
        Ok(self)
    }

    /// One that looks in mirrors and takes only what it may.
    pub(super) fn trusting(trust: &'a Trust, io: &Io<'_>) -> Result<Self, Failure> {
        let carrier = Self::new(&trust.reach, io)?;
        let policy = trust.policy(io)?;
        let looking = carrier.looking_in(&trust.mirrors, io)?;
        Ok(Self { policy, ..looking })
    }

    /// The progress, if somebody wants to see it.
    pub(crate) fn shown(&self) -> Option<&Progress> {
        Some(&*self.progress).filter(|_| !self.reach.quiet)
    }

    /// Pulls an image into a store under its name; what the name means, and the image for the
    /// platform if one is wanted.
    pub(super) async fn pull(
        &self,
        store: &Store,
        reference: &Reference,
        want: &Want,
    ) -> Result<(Descriptor, Option<Descriptor>), Failure> {
        let what = format!("{reference} cannot be pulled");
        let security = self.reach.security(reference);
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

    /// Brings an image into a store; what it is there.
    pub(super) async fn obtain(
        &self,
        store: &Store,
        source: &Location,
        want: &Want,
    ) -> Result<Descriptor, Failure> {
        match source {
            Location::Registry(reference) => {
                let known = store.resolve(reference);
                let known =
                    known.map_err(|error| failure::store("the store cannot be read", &error))?;
                let (top, image) = self.pull(store, reference, want).await?;
                if known.is_none() {
                    // It was pulled for something else than to stay.
                    let _ = store.forget(reference);
                }
                Ok(image.unwrap_or(top))
            }
            Location::Store(reference) => {
                let found = stored(store, reference)?;
                chosen(store, &source.to_string(), found, want)
            }
            Location::File { path, name, .. } => {
                let what = format!("{source} cannot be read");
                let (opened, path) = (store.clone(), self.folder.join(path));
                let read = blocking(move || layout::read(&opened, &path)).await?;
                let read = read.map_err(|error| failure::layout(&what, &error))?;
                let found = one_of(source, read, name.as_deref())?;
                chosen(store, &source.to_string(), found, want)
            }
        }
    }

    /// Brings an image of a store to where it shall be. In the store itself it gets its name.
    pub(crate) async fn deliver(
        &self,
        store: &Store,
        image: &Descriptor,
        target: &Location,
    ) -> Result<(), Failure> {
        let what = format!("{target} cannot be written");
        match target {
            Location::Registry(reference) => {
                let security = self.reach.security(reference);
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
                // Notes of an index that it came from are not its own.
                image.annotations.clear();
                let written = blocking(move || write(&store, form, &path, name, image)).await?;
                written.map_err(|error| failure::layout(&what, &error))
            }
        }
    }
}

fn write(
    store: &Store,
    form: Form,
    path: &std::path::Path,
    name: String,
    image: Descriptor,
) -> Result<(), layout::LayoutError> {
    if form == Form::Layout {
        return layout::put_folder(store, &[(name, image)], path);
    }
    if path.symlink_metadata().is_ok() {
        return Err(layout::LayoutError::Exists(path.to_owned()));
    }
    let failed =
        |what| move |source| layout::LayoutError::Io { what, path: path.to_owned(), source };
    let parent = path.parent().filter(|parent| *parent != std::path::Path::new(""));
    let parent = parent.unwrap_or_else(|| std::path::Path::new("."));
    // Made aside: a file with the target's name is whole.
    let mut aside = tempfile::Builder::new()
        .prefix(".mainstay-")
        .tempfile_in(parent)
        .map_err(failed("cannot make a file in"))?;
    let out: &mut File = aside.as_file_mut();
    if form == Form::Docker {
        let names = Some(name).filter(|name| !name.is_empty()).into_iter().collect();
        layout::write_docker_archive(store, &[(names, image)], &mut *out)?;
    } else {
        layout::write_archive(store, &[(name, image)], &mut *out)?;
    }
    out.flush().and_then(|()| out.sync_all()).map_err(failed("cannot write"))?;
    readable(out).map_err(failed("cannot write"))?;
    aside.persist_noclobber(path).map_err(|error| failed("cannot make")(error.error))?;
    Ok(())
}

/// Files aside are their owner's only; archives are not.
fn readable(file: &File) -> std::io::Result<()> {
    use std::os::unix::fs::PermissionsExt as _;
    file.set_permissions(std::fs::Permissions::from_mode(0o644))
}

/// Work with files that may take long, aside, so that an interruption is heard.
pub(super) async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, Failure> {
    tokio::task::spawn_blocking(work).await.map_err(|error| {
        Failure::from(Cause::new("the work ended early").because(Cause::new(error.to_string())))
    })
}

/// What a name means in a store.
pub(super) fn stored(store: &Store, reference: &Reference) -> Result<Descriptor, Failure> {
    let found = store.resolve(reference);
    let found = found.map_err(|error| failure::store("the store cannot be read", &error))?;
    found.ok_or_else(|| {
        let cause = Cause::new(format!("there is no image {reference} in the store"));
        let cause = cause.remedy("see which there are with: mainstay image list");
        Failure::usage(cause.remedy(format!("get it first: mainstay image pull {reference}")))
    })
}

/// The image of a layout or an archive that is meant.
fn one_of(
    source: &Location,
    mut read: Vec<Named>,
    name: Option<&str>,
) -> Result<Descriptor, Failure> {
    let means = |one: &Named, wanted: &str| {
        one.names.iter().any(|known| {
            let tag = || known.parse::<Reference>().ok().filter(|_| known.contains('/'));
            known == wanted || tag().is_some_and(|known| known.tag() == Some(wanted))
        })
    };
    match name {
        Some(name) => {
            if let Some(place) = read.iter().position(|one| means(one, name)) {
                return Ok(read.swap_remove(place).descriptor);
            }
        }
        None if read.len() == 1 => return Ok(read.swap_remove(0).descriptor),
        None => {}
    }
    let names: Vec<String> =
        read.iter().flat_map(|one| one.names.iter()).map(|name| plain(name)).collect();
    let what = match (read.is_empty(), name) {
        (true, _) => format!("{source} has no image"),
        (false, Some(_)) => format!("{source} is not there"),
        (false, None) => format!("{source} has {} images", read.len()),
    };
    let cause = Cause::new(what);
    Err(Failure::usage(if names.is_empty() {
        cause
    } else {
        cause.remedy(format!("name one of them: {}", names.join(", ")))
    }))
}

/// The image that is wanted of what may be an index.
fn chosen(
    store: &Store,
    source: &str,
    top: Descriptor,
    want: &Want,
) -> Result<Descriptor, Failure> {
    let Want::Platform(platform) = want else { return Ok(top) };
    let mut image = top;
    for _ in 0..=DEEPEST_INDEX {
        let document = store.document_of(&image);
        let document = document
            .map_err(|error| failure::store(&format!("{source} cannot be read"), &error))?;
        let Document::Index(index) = document else { return Ok(image) };
        let Some(one) = index.choose(platform) else {
            let offers = index.manifests.iter().filter_map(|one| one.platform.as_ref());
            let offers: Vec<String> = offers.take(50).map(|one| plain(&one.to_string())).collect();
            let cause = Cause::new(format!("{source} has no image for {platform}"));
            let cause = cause.because(Cause::new(format!("it has {}", offers.join(", "))));
            return Err(Failure::usage(
                cause.remedy("name one that it has with --platform OS/ARCH"),
            ));
        };
        image = one.clone();
    }
    Err(Cause::new(format!("{source} has indexes that lie too deep in each other")).into())
}
