//! Bodies that are written to many objects: encoded once, sent often, and little is read of the answers.

use crate::request::{self, Target, media};
use crate::{Cluster, Patch, Result};
use bytes::Bytes;
use http::Method;
use mainstay_object::{Object, Resource};
use serde::Deserialize;

/// A body, encoded. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Prepared {
    media: &'static str,
    bytes: Bytes,
}

impl Prepared {
    /// An object to be created. Without a namespace it can be created in any.
    ///
    /// # Errors
    /// None that a valid object could cause.
    pub fn object(object: &Object) -> Result<Self> {
        Ok(Self { media: media::JSON, bytes: request::encode_object(object)?.into() })
    }

    /// A change of a part of an object.
    ///
    /// # Errors
    /// None that valid JSON could cause.
    pub fn patch(patch: &Patch) -> Result<Self> {
        let (media, body) = patch.parts();
        Ok(Self { media, bytes: request::encode(body)?.into() })
    }
}

/// What is read of the answer to a write.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Written {
    /// Uid.
    pub uid: String,
    /// Revision.
    pub resource_version: String,
}

#[derive(Deserialize)]
struct Answer {
    metadata: Written,
}

impl Cluster {
    /// Creates an object that was prepared. Of the answer only the metadata is asked for.
    ///
    /// # Errors
    /// As those of [`Cluster::create`].
    pub async fn create_prepared(
        &self,
        resource: &Resource,
        namespace: Option<&str>,
        object: &Prepared,
    ) -> Result<Written> {
        self.send(Method::POST, Target::new(resource.collection_path(namespace)), object).await
    }

    /// Changes a part of an object, or of a subresource of it such as `status`, with a patch that was
    /// prepared. Of the answer only the metadata is asked for.
    ///
    /// # Errors
    /// As those of [`Cluster::patch`].
    pub async fn patch_prepared(
        &self,
        resource: &Resource,
        namespace: Option<&str>,
        name: &str,
        subresource: Option<&str>,
        patch: &Prepared,
    ) -> Result<Written> {
        let mut target = Target::new(resource.object_path(namespace, name));
        if let Some(part) = subresource {
            target = target.segment(part);
        }
        self.send(Method::PATCH, target, patch).await
    }

    async fn send(&self, method: Method, target: Target, body: &Prepared) -> Result<Written> {
        let body = (body.media, body.bytes.clone());
        let response = self.write_raw(method, &target, media::METADATA, body).await?;
        Ok(request::decode::<Answer>(response).await?.metadata)
    }
}
