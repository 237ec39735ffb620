//! Conversion by a webhook for callers that cannot wait.

use super::aside::waited;
use crate::server::ApiServer;
use mainstay_conversion::webhook::Converter;
use mainstay_kinds::Custom;
use mainstay_object::Object;
use serde_json::Value;
use tokio::runtime::{Handle, RuntimeFlavor};

/// An object in another version, for who cannot wait: those who settle managers compare versions.
///
/// The thread waits where others can do its work. Where there is one thread only, the object is what
/// the other version's schema knows of it.
pub(super) fn at_once(
    server: &ApiServer,
    custom: &Custom,
    converter: &Converter,
    object: Object,
    wanted: &str,
) -> Result<Value, String> {
    let runtime = Handle::try_current().ok();
    let runtime = runtime.filter(|handle| handle.runtime_flavor() == RuntimeFlavor::MultiThread);
    if let Some(runtime) = runtime {
        let objects = [object];
        let mut made = waited(&runtime, converter.convert(&server.outbound, &objects, wanted))??;
        return Ok(made.pop().unwrap_or_default().into_value());
    }
    let mut value = object.into_value();
    value["apiVersion"] = wanted.into();
    let name = wanted.rsplit('/').next().unwrap_or_default();
    if let Some(version) = custom.definition.version(name) {
        drop(version.schema.prune(&mut value));
    }
    Ok(value)
}
