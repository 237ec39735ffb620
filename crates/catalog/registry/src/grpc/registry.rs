//! `api.Registry`.

use super::{
    api::{self, registry_server::Registry},
    content,
    message::{self, BundleParts},
};
use crate::{RegistryIndex, ServedCatalog, index::ChannelMember};
use futures::stream::{self, BoxStream};
use mainstay_catalog::{BundleApi, Channel, Package};
use mainstay_gocompat::quote;
use std::sync::Arc;
use tonic::{Request, Response, Status};

/// Implements the API on the content at the moment of each call.
#[derive(Clone, Debug)]
pub(super) struct RegistryService(pub(super) Arc<ServedCatalog>);

type Stream<T> = BoxStream<'static, Result<T, Status>>;
type Streamed<T> = Result<Response<Stream<T>>, Status>;

/// A stream of existing messages.
fn stream_all<T: Send + 'static>(items: Vec<T>) -> Response<Stream<T>> {
    Response::new(Box::pin(stream::iter(items.into_iter().map(Ok))))
}

/// A stream of messages, each built when its turn comes.
fn stream_lazily<T: Send + 'static>(
    index: Arc<RegistryIndex>,
    make: impl Fn(&RegistryIndex, usize) -> Option<Result<T, Status>> + Send + 'static,
) -> Response<Stream<T>> {
    let mut position = 0;
    let next = std::iter::from_fn(move || {
        let message = make(&index, position);
        position += 1;
        message
    });
    Response::new(Box::pin(stream::iter(next)))
}

/// Upstream's errors have the code `UNKNOWN`.
fn unknown_error<T>(words: String) -> Result<T, Status> {
    Err(Status::unknown(words))
}

fn package<'i>(index: &'i RegistryIndex, name: &str) -> Result<&'i Package, Status> {
    index
        .catalog()
        .package(name)
        .ok_or_else(|| Status::unknown(format!("package {} not found", quote(name))))
}

fn channel<'i>(package: &'i Package, name: &str) -> Result<&'i Channel, Status> {
    package.channel(name).ok_or_else(|| {
        let (package, name) = (quote(&package.name), quote(name));
        Status::unknown(format!("package {package}, channel {name} not found"))
    })
}

/// The bundle of that name with its content. Upstream has found the bundle by its entry.
fn bundle_content(
    package: &Package,
    channel: &Channel,
    name: &str,
) -> Result<Response<api::Bundle>, Status> {
    let standing = channel.entry(name).zip(package.bundle(name));
    let Some((entry, bundle)) = standing else {
        let (package, channel) = (quote(&package.name), quote(&channel.name));
        return unknown_error(format!(
            "package {package}, channel {channel}, bundle {} not found",
            quote(name)
        ));
    };
    let standing = ChannelMember { package, channel, entry, bundle };
    message::bundle(&standing, BundleParts::Content).map(Response::new)
}

fn no_provider(what: &str, api: &BundleApi) -> Status {
    let BundleApi { group, version, kind } = api;
    let (group, version, kind) = (quote(group), quote(version), quote(kind));
    Status::unknown(format!("{what} group:{group} version:{version} kind:{kind}"))
}

const NO_ENTRIES: &str = "no channel entries found that provide";

#[tonic::async_trait]
impl Registry for RegistryService {
    type ListPackagesStream = Stream<api::PackageName>;
    type GetChannelEntriesThatReplaceStream = Stream<api::ChannelEntry>;
    type GetChannelEntriesThatProvideStream = Stream<api::ChannelEntry>;
    type GetLatestChannelEntriesThatProvideStream = Stream<api::ChannelEntry>;
    type ListBundlesStream = Stream<api::Bundle>;

    async fn list_packages(
        &self,
        _: Request<api::ListPackageRequest>,
    ) -> Streamed<api::PackageName> {
        let index = content(&self.0)?;
        let name = |package: &Package| api::PackageName { name: package.name.as_ref().to_owned() };
        Ok(stream_all(index.catalog().packages().map(name).collect()))
    }

    async fn get_package(
        &self,
        request: Request<api::GetPackageRequest>,
    ) -> Result<Response<api::Package>, Status> {
        let index = content(&self.0)?;
        let found = package(&index, &request.get_ref().name)?;
        Ok(Response::new(message::package(found)))
    }

    async fn get_bundle(
        &self,
        request: Request<api::GetBundleRequest>,
    ) -> Result<Response<api::Bundle>, Status> {
        let api::GetBundleRequest { pkg_name, channel_name, csv_name } = request.get_ref();
        let index = content(&self.0)?;
        let package = package(&index, pkg_name)?;
        bundle_content(package, channel(package, channel_name)?, csv_name)
    }

    async fn get_bundle_for_channel(
        &self,
        request: Request<api::GetBundleInChannelRequest>,
    ) -> Result<Response<api::Bundle>, Status> {
        let api::GetBundleInChannelRequest { pkg_name, channel_name } = request.get_ref();
        let index = content(&self.0)?;
        let package = package(&index, pkg_name)?;
        let channel = channel(package, channel_name)?;
        bundle_content(package, channel, &channel.head().name)
    }

    async fn get_channel_entries_that_replace(
        &self,
        request: Request<api::GetAllReplacementsRequest>,
    ) -> Streamed<api::ChannelEntry> {
        let name = &request.get_ref().csv_name;
        let index = content(&self.0)?;
        let mut entries = Vec::new();
        for standing in index.successors(name) {
            let replaces = message::replaced(standing.entry);
            // An entry that skips a bundle twice appears twice.
            let skips = standing.entry.skips.iter().filter(|skip| ***skip == **name);
            let count = if replaces == name { 1 } else { skips.count() };
            entries.extend((0..count).map(|_| message::edge(&standing, replaces)));
        }
        if entries.is_empty() {
            return unknown_error(format!("no channel entries found that replace {name}"));
        }
        Ok(stream_all(entries))
    }

    async fn get_bundle_that_replaces(
        &self,
        request: Request<api::GetReplacementRequest>,
    ) -> Result<Response<api::Bundle>, Status> {
        let api::GetReplacementRequest { csv_name, pkg_name, channel_name } = request.get_ref();
        let index = content(&self.0)?;
        let Some(package) = index.catalog().package(pkg_name) else {
            return unknown_error(format!("package {pkg_name} not found"));
        };
        let channel = channel(package, channel_name)?;
        let successors = index.successors(csv_name).filter(|standing| {
            standing.package.name == package.name && standing.channel.name == channel.name
        });
        // Upstream returns any of them; the newest one leads furthest.
        let newest = successors.max_by(|a, b| {
            let order = |member: &ChannelMember<'_>| {
                (member.bundle.version.clone(), member.bundle.release.clone())
            };
            order(a).cmp(&order(b)).then_with(|| b.bundle.name.cmp(&a.bundle.name))
        });
        let Some(standing) = newest else {
            let (package, channel) = (quote(pkg_name), quote(channel_name));
            return unknown_error(format!(
                "no entry found for package {package}, channel {channel}"
            ));
        };
        bundle_content(package, channel, &standing.entry.name)
    }

    async fn get_channel_entries_that_provide(
        &self,
        request: Request<api::GetAllProvidersRequest>,
    ) -> Streamed<api::ChannelEntry> {
        let api::GetAllProvidersRequest { group, version, kind, plural: _ } = request.into_inner();
        let api = BundleApi { group, version, kind };
        let index = content(&self.0)?;
        let entries: Vec<_> =
            index.providers(&api).flat_map(|standing| message::edges(standing, |_| true)).collect();
        if entries.is_empty() {
            Err(no_provider(NO_ENTRIES, &api))
        } else {
            Ok(stream_all(entries))
        }
    }

    async fn get_latest_channel_entries_that_provide(
        &self,
        request: Request<api::GetLatestProvidersRequest>,
    ) -> Streamed<api::ChannelEntry> {
        let api::GetLatestProvidersRequest { group, version, kind, plural: _ } =
            request.into_inner();
        let api = BundleApi { group, version, kind };
        let index = content(&self.0)?;
        let entries: Vec<_> = index
            .providers(&api)
            .filter(ChannelMember::is_head)
            .flat_map(|standing| {
                message::edges(standing, move |skip| standing.channel.entry(skip).is_some())
            })
            .collect();
        if entries.is_empty() {
            Err(no_provider(NO_ENTRIES, &api))
        } else {
            Ok(stream_all(entries))
        }
    }

    async fn get_default_bundle_that_provides(
        &self,
        request: Request<api::GetDefaultProviderRequest>,
    ) -> Result<Response<api::Bundle>, Status> {
        let api::GetDefaultProviderRequest { group, version, kind, plural: _ } =
            request.into_inner();
        let api = BundleApi { group, version, kind };
        let index = content(&self.0)?;
        let mut heads = index.providers(&api).filter(ChannelMember::is_head).peekable();
        let none = if heads.peek().is_some() { "no entry found that provides" } else { NO_ENTRIES };
        // The heads are sorted by package.
        match heads.find(|head| head.channel.name == head.package.default_channel) {
            Some(head) => message::bundle(&head, BundleParts::Content).map(Response::new),
            None => Err(no_provider(none, &api)),
        }
    }

    async fn list_bundles(&self, _: Request<api::ListBundlesRequest>) -> Streamed<api::Bundle> {
        let index = content(&self.0)?;
        Ok(stream_lazily(index, |index, position| {
            Some(message::bundle(&index.member_at(position)?, BundleParts::EdgesAndContent))
        }))
    }
}
