//! What the status of a CatalogSource should say, and how it counts for Subscriptions.
//!
//! A folder that cannot be read makes its CatalogSource `TRANSIENT_FAILURE`, with file and line,
//! and an event. For Subscriptions the catalog stays healthy as long as its last good content is
//! served: the original too judges whether the registry server is there, not whether it is
//! connected, and nothing that is installed or upgraded is held up. So `CatalogSourcesUnhealthy` is
//! `True` only when nothing is served; while old content is served it stays `False` and its message
//! names the catalog.
//!
//! A catalog by image that has content stays `READY` while the image cannot be had or read again, as
//! in the original, where the old pod goes on; reason and message say what is wrong.
//!
//! A catalog behind an address has the state of the connection to its server, and nothing besides: the
//! original writes no reason there, and clients take one for a wrong spec. What is wrong is told in an
//! event, and to whoever resolves with it. It counts as healthy for Subscriptions whatever its state
//! is, as in the original: what cannot be resolved without it says so itself.

use crate::follow::{is_by_address, is_by_config_map, is_by_image};
use crate::store::{CatalogContent, CatalogState};
use crate::{images, pods};
use mainstay_api::{
    CatalogSource, CatalogSourceReason, CatalogSourceSpec, CatalogSourceStatus, ConfigMapReference,
    ConnectionState, LastObservedState, RegistryService, SourceType, Time,
};
use mainstay_client::EventType;
use std::sync::Arc;

/// `spec.address` of a CatalogSource whose content is a folder of this process.
///
/// The API demands an address or an image. Names under `invalid` never resolve (RFC 2606), so
/// no other software can mistake this for a server.
pub const FOLDER_ADDRESS: &str = "folder.mainstay.invalid:50051";

/// What is wrong with a spec.
fn invalid(spec: &CatalogSourceSpec) -> Option<String> {
    match &spec.source_type {
        kind @ (SourceType::Internal | SourceType::ConfigMap) => spec
            .config_map
            .is_empty()
            .then(|| format!("configmap name unset: must be set for sourcetype: {kind}")),
        kind @ SourceType::Grpc => (spec.image.is_empty() && spec.address.is_empty()).then(|| {
            format!("image and address unset: at least one must be set for sourcetype: {kind}")
        }),
        other => Some(format!("unknown sourcetype: {other}")),
    }
}

/// Why a catalog that nobody follows has no content.
fn unserved(spec: &CatalogSourceSpec) -> String {
    let what = if spec.address.is_empty() {
        format!("catalog images are not served: {}", spec.image)
    } else {
        "no folder is known for this catalog".to_owned()
    };
    format!("{what}; give the catalog as a folder (--catalog NAME=DIR)")
}

/// Whether a reason says that content cannot be had.
pub(crate) fn is_bad(reason: &CatalogSourceReason) -> bool {
    matches!(reason, CatalogSourceReason::RegistryServer | CatalogSourceReason::ConfigMap)
}

/// The status that a CatalogSource should have. `state` is what the store knows; none if it was
/// not told of this catalog.
pub(crate) fn status(
    source: &CatalogSource,
    state: Option<&CatalogState>,
    now: Time,
) -> CatalogSourceStatus {
    let old = &source.status;
    let mut new = old.clone();
    // After a restart, what was wrong is taken to be wrong until the folder has been read.
    let unread = state.is_some_and(CatalogState::is_loading);
    if !unread || !is_bad(&old.reason) {
        (new.reason, new.message) = Default::default();
    }
    if let Some(message) = invalid(&source.spec) {
        new.reason = CatalogSourceReason::SpecInvalid;
        new.message = message;
        return new;
    }
    if let Some(read) = state.and_then(|state| state.config_map.as_ref()) {
        let known = old.config_map_reference.as_ref();
        if known.is_none_or(|reference| {
            reference.uid != read.uid || reference.resource_version != read.version
        }) {
            let before = known.and_then(|reference| reference.last_update_time);
            new.config_map_reference = Some(ConfigMapReference {
                name: source.spec.config_map.clone(),
                namespace: source.metadata.namespace.clone(),
                last_update_time: Some(now.later_than(before)),
                resource_version: read.version.clone(),
                uid: read.uid.clone(),
            });
        }
    }
    let by_map = is_by_config_map(source);
    let runs = by_map || is_by_image(source);
    if let Some(CatalogState { missing: Some(missing), .. }) = state {
        new.reason = CatalogSourceReason::ConfigMap;
        new.message.clone_from(missing);
        // Nothing else is known, or it stays as it was.
        return new;
    }
    if by_map && state.is_some_and(|state| state.config_map.is_none()) {
        // It is being looked for.
        return old.clone();
    }
    let served = state.and_then(|state| state.address.as_deref());
    let address = if let Some(served) = served {
        served.to_owned()
    } else if source.spec.address.is_empty() {
        pods::address(source)
    } else {
        source.spec.address.clone()
    };
    let (observed, failure) = match state {
        None => (LastObservedState::TransientFailure, Some(unserved(&source.spec))),
        Some(state) if state.is_loading() => (LastObservedState::Connecting, None),
        Some(CatalogState { observed: Some(observed), .. }) => (observed.clone(), None),
        Some(CatalogState { failure: Some(failure), content, .. }) => {
            let serves = runs && content.is_some();
            let observed =
                if serves { LastObservedState::Ready } else { LastObservedState::TransientFailure };
            (observed, Some(failure.clone()))
        }
        Some(_) => (LastObservedState::Ready, None),
    };
    if let (_, Some(wrong)) = images::interval(source)
        && is_by_image(source)
    {
        // A wrong spec stays wrong whatever becomes of the image.
        new.reason = CatalogSourceReason::InvalidInterval;
        new.message = match failure {
            Some(failure) => format!("{wrong}; {failure}"),
            None => wrong,
        };
    } else if let Some(failure) = failure {
        new.reason = if by_map {
            CatalogSourceReason::ConfigMap
        } else {
            CatalogSourceReason::RegistryServer
        };
        new.message = failure;
    }
    // Clients wait until the connection is newer than the ConfigMap, which is newer than the one before.
    let updated =
        new.config_map_reference.as_ref().and_then(|reference| reference.last_update_time);
    let last_connect = Some(now.later_than(updated));
    let connection = ConnectionState { last_observed_state: observed, address, last_connect };
    // What this process reads is served as soon as it is read; a pod has to be connected to.
    let read_here =
        state.is_some_and(|state| state.config_map.is_some() && state.observed.is_none());
    let outdated = |connection: &ConnectionState| read_here && connection.last_connect <= updated;
    // After a restart, how it stood is taken to hold until it is known.
    let same = old.connection_state.as_ref().is_some_and(|old| {
        (unread || old.last_observed_state == connection.last_observed_state)
            && old.address == connection.address
            && !outdated(old)
    });
    if !same {
        new.connection_state = Some(connection);
    }
    if state.is_some() && new.registry_service.is_none() {
        let metadata = &source.metadata;
        new.registry_service = Some(RegistryService {
            protocol: "grpc".to_owned(),
            created_at: Some(now),
            ..if runs {
                RegistryService {
                    port: pods::PORT.to_string(),
                    service_name: pods::service_name(source),
                    service_namespace: metadata.namespace.clone(),
                    ..RegistryService::default()
                }
            } else {
                RegistryService::default()
            }
        });
    }
    if let Some(polled) = state.and_then(|state| state.polled) {
        new.latest_image_registry_poll = Some(Time::new(polled));
    }
    new
}

/// Whether the server of a catalog cannot be reached.
pub(crate) fn is_lost(status: &CatalogSourceStatus) -> bool {
    let state = status.connection_state.as_ref().map(|connection| &connection.last_observed_state);
    state == Some(&LastObservedState::TransientFailure)
}

/// The event that tells why a catalog cannot be read.
pub(crate) fn unreadable(why: &str) -> (EventType, &'static str, String) {
    (EventType::Warning, "CatalogUnreadable", why.to_owned())
}

/// The event that a new status is worth: type, reason and message. `failure` is what is wrong where
/// the status has no words for it.
pub(crate) fn event(
    old: &CatalogSourceStatus,
    new: &CatalogSourceStatus,
    failure: Option<&str>,
) -> Option<(EventType, &'static str, String)> {
    let bad = |status: &CatalogSourceStatus| is_bad(&status.reason);
    let is = |status: &CatalogSourceStatus, state: LastObservedState| {
        status
            .connection_state
            .as_ref()
            .is_some_and(|connection| connection.last_observed_state == state)
    };
    // A pod that is not up yet tells of itself.
    let starts = |old: &CatalogSourceStatus, new: &CatalogSourceStatus| {
        let service = new.registry_service.as_ref();
        service.is_some_and(|service| !service.service_name.is_empty())
            && !is(old, LastObservedState::Ready)
    };
    if bad(new) && (!bad(old) || old.message != new.message) {
        Some(unreadable(&new.message))
    } else if is_lost(new) && !is_lost(old) && !bad(new) && !starts(old, new) {
        Some(unreadable(failure.unwrap_or("the registry cannot be reached")))
    } else if (bad(old) || is_lost(old))
        && !is_lost(new)
        && new.reason == CatalogSourceReason::default()
        && new
            .connection_state
            .as_ref()
            .is_some_and(|connection| connection.last_observed_state == LastObservedState::Ready)
    {
        Some((EventType::Normal, "CatalogReadable", "the catalog can be read again".to_owned()))
    } else {
        None
    }
}

/// Whether Subscriptions count a catalog as healthy: it has content, be it the last good one; or a
/// server has it, of which only the connection is ours.
pub fn is_healthy(source: &CatalogSource, state: Option<&CatalogState>) -> bool {
    let has = state.is_some_and(|state| state.content.is_some());
    let served = state.is_some_and(|state| state.observed.is_some() && state.missing.is_none());
    invalid(&source.spec).is_none() && (has || served || is_by_address(source))
}

/// A catalog offers nothing; the text says why.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct NoContent(pub String);

/// What a catalog offers.
///
/// # Errors
/// It offers nothing: the spec of its CatalogSource is invalid, or its content could not be read yet.
pub fn content(
    source: &CatalogSource,
    state: Option<CatalogState>,
) -> Result<Arc<CatalogContent>, NoContent> {
    if let Some(message) = invalid(&source.spec) {
        return Err(NoContent(message));
    }
    let (content, failure) = state.map(|state| (state.content, state.failure)).unwrap_or_default();
    content.ok_or_else(|| NoContent(failure.unwrap_or_else(|| source.status.message.clone())))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn source(kind: &str) -> CatalogSource {
        let mut source = CatalogSource::new("olm", "cat");
        source.spec.source_type = kind.into();
        source
    }

    fn time(second: i64) -> Time {
        Time::new(jiff::Timestamp::from_second(second).unwrap())
    }

    #[test]
    fn invalid_specs_have_upstreams_messages() {
        for (kind, message) in [
            ("grpc", "image and address unset: at least one must be set for sourcetype: grpc"),
            ("configmap", "configmap name unset: must be set for sourcetype: configmap"),
            ("internal", "configmap name unset: must be set for sourcetype: internal"),
            ("nonsense", "unknown sourcetype: nonsense"),
        ] {
            let status = status(&source(kind), None, time(1));
            assert_eq!(
                (status.reason.as_str(), status.message.as_str()),
                ("SpecInvalidError", message)
            );
            assert!(status.connection_state.is_none());
        }
    }

    #[test]
    fn folder_failure_is_in_the_status_and_is_written_once() {
        let mut source = source("grpc");
        source.spec.address = FOLDER_ADDRESS.to_owned();
        let loading = status(&source, Some(&CatalogState::default()), time(1));
        assert_eq!(
            loading.connection_state.unwrap().last_observed_state,
            LastObservedState::Connecting
        );
        let bad = CatalogState { failure: Some("a.yaml:3: no".into()), ..CatalogState::default() };
        source.status = status(&source, Some(&bad), time(2));
        assert_eq!(source.status.message, "a.yaml:3: no");
        assert_eq!(
            source.status.connection_state.as_ref().unwrap().last_observed_state,
            LastObservedState::TransientFailure
        );
        assert_eq!(status(&source, Some(&bad), time(9)), source.status);
        assert!(!is_healthy(&source, Some(&bad)));
        let restarted = status(&source, Some(&CatalogState::default()), time(3));
        assert_eq!(restarted.message, "a.yaml:3: no", "nothing better is known yet");
    }

    #[test]
    fn connection_address_is_where_the_catalog_is_served() {
        let mut source = source("grpc");
        source.spec.address = FOLDER_ADDRESS.to_owned();
        let address = |state: Option<&CatalogState>| {
            status(&source, state, time(1)).connection_state.unwrap().address
        };
        let served =
            CatalogState { address: Some("127.0.0.1:7".into()), ..CatalogState::default() };
        assert_eq!(address(Some(&served)), "127.0.0.1:7");
        assert_eq!(address(Some(&CatalogState::default())), FOLDER_ADDRESS);
        assert_eq!(address(None), FOLDER_ADDRESS);
    }

    #[test]
    fn failures_and_recoveries_are_events() {
        use LastObservedState::{Connecting, Ready, TransientFailure};
        let bad = |message: &str| CatalogSourceStatus {
            reason: CatalogSourceReason::RegistryServer,
            message: message.to_owned(),
            ..CatalogSourceStatus::default()
        };
        let good = || CatalogSourceStatus {
            connection_state: Some(ConnectionState {
                last_observed_state: Ready,
                address: "a:1".to_owned(),
                last_connect: None,
            }),
            ..CatalogSourceStatus::default()
        };
        let lost = || {
            let mut status = good();
            if let Some(connection) = &mut status.connection_state {
                connection.last_observed_state = TransientFailure;
            }
            status
        };
        let runs = |state: LastObservedState| {
            let mut status = good();
            if let Some(connection) = &mut status.connection_state {
                connection.last_observed_state = state;
            }
            status.registry_service = Some(RegistryService {
                service_name: "cat".to_owned(),
                ..RegistryService::default()
            });
            status
        };
        let told = |message| Some((EventType::Warning, "CatalogUnreadable", message));
        let again = "the catalog can be read again";
        for (old, new, wanted) in [
            (good(), good(), None),
            (good(), bad("no"), told("no")),
            (bad("no"), bad("no"), None),
            (bad("no"), bad("neither"), told("neither")),
            (bad("no"), good(), Some((EventType::Normal, "CatalogReadable", again))),
            (good(), lost(), told("refused")),
            (lost(), lost(), None),
            (runs(Connecting), runs(TransientFailure), None),
            (runs(Ready), runs(TransientFailure), told("refused")),
            (lost(), good(), Some((EventType::Normal, "CatalogReadable", again))),
        ] {
            let event = event(&old, &new, Some("refused"));
            let event = event.as_ref().map(|event| (event.0, event.1, event.2.as_str()));
            assert_eq!(event, wanted);
        }
    }

    #[test]
    fn last_connect_is_later_than_each_config_map_update() {
        let mut source = source("configmap");
        source.spec.config_map = "content".to_owned();
        let state = |version: &str| CatalogState {
            content: Some(content_of_nothing()),
            config_map: Some(crate::config_map::ReadConfigMap {
                version: version.to_owned(),
                ..Default::default()
            }),
            ..CatalogState::default()
        };
        let mut seconds = Vec::new();
        for version in ["1", "2", "2", "3"] {
            source.status = status(&source, Some(&state(version)), time(10));
            let updated = source.status.config_map_reference.as_ref().unwrap().last_update_time;
            let connected = source.status.connection_state.as_ref().unwrap().last_connect;
            seconds.push([updated, connected].map(|time| time.unwrap().timestamp().as_second()));
        }
        // shows E047
        assert_eq!(seconds, [[10, 11], [11, 12], [11, 12], [12, 13]]);
    }

    fn content_of_nothing() -> Arc<CatalogContent> {
        let catalog = mainstay_catalog::Declared::default().check().unwrap();
        crate::store::content(catalog, std::time::SystemTime::UNIX_EPOCH)
    }

    #[test]
    fn registry_source_has_its_connection_state_and_counts_as_healthy() {
        let mut source = source("grpc");
        source.spec.address = "127.0.0.1:9".to_owned();
        let lost = CatalogState {
            failure: Some("failed to list bundles: refused".into()),
            observed: Some(LastObservedState::TransientFailure),
            ..CatalogState::default()
        };
        source.status = status(&source, Some(&lost), time(1));
        let connection = source.status.connection_state.as_ref().unwrap();
        // shows CAT-31
        assert_eq!(connection.last_observed_state, LastObservedState::TransientFailure);
        assert_eq!(
            (connection.address.as_str(), source.status.message.as_str()),
            ("127.0.0.1:9", "")
        );
        assert_eq!(source.status.registry_service.as_ref().unwrap().service_name, "");
        assert!(is_healthy(&source, Some(&lost)));
        assert_eq!(status(&source, Some(&lost), time(9)), source.status);
        let why = content(&source, Some(lost)).err();
        assert_eq!(why.map(|why| why.0).as_deref(), Some("failed to list bundles: refused"));
        // After a restart nothing is written before something is known.
        let begun = CatalogState {
            observed: Some(LastObservedState::Connecting),
            ..CatalogState::default()
        };
        assert_eq!(status(&source, Some(&begun), time(9)), source.status);
    }

    #[test]
    fn unserved_catalog_images_are_reported() {
        let mut source = source("grpc");
        source.spec.image = "registry.invalid/index:1".to_owned();
        let status = status(&source, None, time(1));
        assert_eq!(
            status.message,
            "catalog images are not served: registry.invalid/index:1; give the catalog as a folder (--catalog NAME=DIR)"
        );
        assert_eq!(status.connection_state.unwrap().address, "cat.olm.svc:50051");
    }
}
