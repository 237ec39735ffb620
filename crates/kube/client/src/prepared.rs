//! Prepared requests: bodies that are encoded once and sent for many objects, with minimal
//! responses.

use crate::request::{self, Target, media};
use crate::{Cluster, Patch, Result};
use bytes::Bytes;
use http::Method;
use mainstay_object::{Object, Resource};
use serde::Deserialize;

/// An encoded body. Cheap to clone.
#[derive(Clone, Debug)]
pub struct EncodedBody {
    media: &'static str,
    bytes: Bytes,
}

impl EncodedBody {
    /// An object for creation. Without a namespace it can be created in any.
    ///
    /// # Errors
    /// No valid object causes one.
    pub fn object(object: &Object) -> Result<Self> {
        Ok(Self { media: media::JSON, bytes: request::encode_object(object)?.into() })
    }

    /// A patch.
    ///
    /// # Errors
    /// No valid JSON causes one.
    pub fn patch(patch: &Patch) -> Result<Self> {
        let (media, body) = patch.parts();
        Ok(Self { media, bytes: request::encode(body)?.into() })
    }
}

/// The fields that are read from the response to a write.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct WriteResponse {
    /// The uid.
    pub uid: String,
    /// The revision.
    pub resource_version: String,
}

#[derive(Deserialize)]
struct WrittenResponse {
    metadata: WriteResponse,
}

impl Cluster {
    /// Creates a prepared object. Requests only the metadata in the response.
    ///
    /// # Errors
    /// As those of [`Cluster::create`].
    pub async fn create_prepared(
        &self,
        resource: &Resource,
        namespace: Option<&str>,
        object: &EncodedBody,
    ) -> Result<WriteResponse> {
        self.send(Method::POST, Target::new(resource.collection_path(namespace)), object).await
    }

    /// Sends a prepared patch of an object or of a subresource such as `status`. Requests only the
    /// metadata in the response.
    ///
    /// # Errors
    /// As those of [`Cluster::patch`].
    pub async fn patch_prepared(
        &self,
        resource: &Resource,
        namespace: Option<&str>,
        name: &str,
        subresource: Option<&str>,
        patch: &EncodedBody,
    ) -> Result<WriteResponse> {
        let mut target = Target::new(resource.object_path(namespace, name));
        if let Some(part) = subresource {
            target = target.segment(part);
        }
        self.send(Method::PATCH, target, patch).await
    }

    async fn send(
        &self,
        method: Method,
        target: Target,
        body: &EncodedBody,
    ) -> Result<WriteResponse> {
        let body = (body.media, body.bytes.clone());
        let response = self.write_raw(method, &target, media::METADATA, body).await?;
        Ok(request::decode::<WrittenResponse>(response).await?.metadata)
    }
}
