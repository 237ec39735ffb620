//! Blob uploads: in one request, or in several.

use super::{
    RegistrySettings,
    response::{self, ErrorCode, ErrorResponse, HandlerResult, RegistryBody},
};
use crate::{
    digest::{Digest, hex},
    store::{BlobWriter, ImageStore},
};
use bytes::Bytes;
use http::{HeaderMap, Response, StatusCode, header};
use http_body::Body as HttpBody;
use http_body_util::BodyExt as _;
use mainstay_clock::Clock;
use parking_lot::Mutex;
use std::{collections::BTreeMap, sync::Arc, time::Duration};

/// After how many stall timeouts without a request an upload expires.
const EXPIRY_TIMEOUTS: u32 = 60;
/// How many bytes are written at once.
const BATCH: usize = 1 << 20;

type Shared = Arc<tokio::sync::Mutex<Option<BlobWriter>>>;

#[derive(Debug)]
struct Upload {
    writer: Shared,
    used: Duration,
}

#[derive(Debug)]
pub(super) struct Uploads {
    store: ImageStore,
    largest: u64,
    most: usize,
    timeout: Duration,
    clock: Clock,
    open: Mutex<BTreeMap<String, Upload>>,
}

/// The next chunk of a request body.
pub(super) async fn frame<B>(
    body: &mut B,
    timeout: Duration,
) -> Result<Option<Bytes>, ErrorResponse>
where
    B: HttpBody<Data = Bytes> + Send + Unpin,
    B::Error: std::fmt::Display,
{
    loop {
        let next = tokio::time::timeout(timeout, body.frame()).await.map_err(|_| {
            let why = "nothing was sent for too long";
            ErrorResponse::new(StatusCode::REQUEST_TIMEOUT, ErrorCode::BlobUploadInvalid, why)
        })?;
        match next {
            None => return Ok(None),
            Some(Err(error)) => {
                return Err(ErrorResponse::bad(ErrorCode::BlobUploadInvalid, &error.to_string()));
            }
            Some(Ok(frame)) => {
                if let Ok(bytes) = frame.into_data() {
                    return Ok(Some(bytes));
                }
            }
        }
    }
}

impl Uploads {
    pub(super) fn new(store: ImageStore, settings: &RegistrySettings, clock: Clock) -> Self {
        Self {
            store,
            largest: settings.largest,
            most: settings.uploads,
            timeout: settings.timeout,
            clock,
            open: Mutex::default(),
        }
    }

    pub(super) fn begin(&self, name: &str) -> HandlerResult {
        let mut random = [0; 16];
        getrandom::fill(&mut random).map_err(ErrorResponse::internal)?;
        let id = String::from(hex(&random));
        let now = self.clock.elapsed();
        {
            let mut open = self.open.lock();
            open.retain(|_, one| now.saturating_sub(one.used) < self.timeout * EXPIRY_TIMEOUTS);
            if open.len() >= self.most {
                let why = "too many uploads are open";
                let status = StatusCode::TOO_MANY_REQUESTS;
                return Err(ErrorResponse::new(status, ErrorCode::TooManyRequests, why));
            }
            // The lock is held while the file is created, so that the limit holds.
            let writer = self.store.writer(self.largest)?;
            let writer = Arc::new(tokio::sync::Mutex::new(Some(writer)));
            open.insert(id.clone(), Upload { writer, used: now });
        }
        Ok(accepted(name, &id, 0))
    }

    fn find(&self, id: &str) -> Result<Shared, ErrorResponse> {
        let now = self.clock.elapsed();
        let mut open = self.open.lock();
        let upload = open.get_mut(id).ok_or_else(unknown)?;
        upload.used = now;
        Ok(Arc::clone(&upload.writer))
    }

    pub(super) async fn status(&self, name: &str, id: &str) -> HandlerResult {
        let shared = self.find(id)?;
        let length = shared.lock().await.as_ref().map(BlobWriter::length).ok_or_else(unknown)?;
        let mut response = accepted(name, id, length);
        *response.status_mut() = StatusCode::NO_CONTENT;
        Ok(response)
    }

    pub(super) async fn append<B>(
        &self,
        name: &str,
        id: &str,
        headers: &HeaderMap,
        body: B,
    ) -> HandlerResult
    where
        B: HttpBody<Data = Bytes> + Send + Unpin,
        B::Error: std::fmt::Display,
    {
        let shared = self.find(id)?;
        let mut writer = shared.lock().await;
        self.fill(&mut writer, headers, body).await?;
        let length = writer.as_ref().map(BlobWriter::length).ok_or_else(unknown)?;
        Ok(accepted(name, id, length))
    }

    pub(super) async fn finish<B>(
        &self,
        id: &str,
        headers: &HeaderMap,
        body: B,
        digest: &Digest,
    ) -> Result<(), ErrorResponse>
    where
        B: HttpBody<Data = Bytes> + Send + Unpin,
        B::Error: std::fmt::Display,
    {
        let shared = self.find(id)?;
        let mut slot = shared.lock().await;
        self.fill(&mut slot, headers, body).await?;
        let writer = slot.take().ok_or_else(unknown)?;
        self.open.lock().remove(id);
        commit(writer, digest).await
    }

    /// Uploads a blob in one request.
    pub(super) async fn whole<B>(&self, digest: &Digest, body: B) -> Result<(), ErrorResponse>
    where
        B: HttpBody<Data = Bytes> + Send + Unpin,
        B::Error: std::fmt::Display,
    {
        let writer = self.store.writer_of(digest.algorithm(), self.largest)?;
        let mut slot = Some(writer);
        self.fill(&mut slot, &HeaderMap::new(), body).await?;
        commit(slot.take().ok_or_else(unknown)?, digest).await
    }

    pub(super) fn cancel(&self, id: &str) -> HandlerResult {
        match self.open.lock().remove(id) {
            Some(_) => {
                Ok(response::response(StatusCode::NO_CONTENT, response::whole(Bytes::new())))
            }
            None => Err(unknown()),
        }
    }

    /// Appends the body of a request. An interrupted body stays in the upload, so that the client
    /// can resume.
    async fn fill<B>(
        &self,
        slot: &mut Option<BlobWriter>,
        headers: &HeaderMap,
        mut body: B,
    ) -> Result<(), ErrorResponse>
    where
        B: HttpBody<Data = Bytes> + Send + Unpin,
        B::Error: std::fmt::Display,
    {
        let have = slot.as_ref().map(BlobWriter::length).ok_or_else(unknown)?;
        if let Some(range) = headers.get(header::CONTENT_RANGE) {
            let from = range.to_str().ok().and_then(|text| {
                let text = text.strip_prefix("bytes ").unwrap_or(text);
                text.split_once('-')?.0.parse::<u64>().ok()
            });
            if from != Some(have) {
                let why = format!("the upload has {have} bytes");
                let status = StatusCode::RANGE_NOT_SATISFIABLE;
                return Err(ErrorResponse::new(status, ErrorCode::BlobUploadInvalid, &why));
            }
        }
        loop {
            let mut batch = Vec::new();
            let mut size = 0;
            let mut failed = None;
            while size < BATCH {
                match frame(&mut body, self.timeout).await {
                    Ok(Some(bytes)) => {
                        size += bytes.len();
                        batch.push(bytes);
                    }
                    Ok(None) => break,
                    Err(error) => {
                        failed = Some(error);
                        break;
                    }
                }
            }
            if !batch.is_empty() {
                let mut writer = slot.take().ok_or_else(unknown)?;
                let written = tokio::task::spawn_blocking(move || {
                    let written = batch.iter().try_for_each(|bytes| writer.append(bytes));
                    (writer, written)
                });
                let (writer, written) = written.await.map_err(ErrorResponse::internal)?;
                *slot = Some(writer);
                written?;
            }
            if let Some(error) = failed {
                return Err(error);
            }
            if size < BATCH {
                return Ok(());
            }
        }
    }
}

async fn commit(writer: BlobWriter, digest: &Digest) -> Result<(), ErrorResponse> {
    let digest = digest.clone();
    let committed = tokio::task::spawn_blocking(move || writer.commit(Some(&digest), None));
    committed.await.map_err(ErrorResponse::internal)??;
    Ok(())
}

fn unknown() -> ErrorResponse {
    ErrorResponse::new(
        StatusCode::NOT_FOUND,
        ErrorCode::BlobUploadUnknown,
        "there is no such upload",
    )
}

fn accepted(name: &str, id: &str, length: u64) -> Response<RegistryBody> {
    let mut response = response::accepted();
    response::put(&mut response, "location", &format!("/v2/{name}/blobs/uploads/{id}"));
    response::put(&mut response, "docker-upload-uuid", id);
    response::put(&mut response, "range", &format!("0-{}", length.saturating_sub(1)));
    response
}
