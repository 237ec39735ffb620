//! The recorded requests and their answers.

use anyhow::Context;
use serde::Deserialize;
use std::collections::BTreeMap;
use std::path::Path;

/// The requests of one configuration of catalogd.
#[derive(Debug)]
pub struct RequestRecording {
    /// The prefix of the names of its requests.
    pub name: &'static str,
    /// Whether `metas` was on.
    pub metas: bool,
    /// The requests, in order.
    pub requests: Vec<RecordedRequest>,
}

/// A request and its recorded answer.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct RecordedRequest {
    /// The id, unique in its file.
    pub id: String,
    /// The method, as sent.
    pub method: String,
    /// The path with its query, as sent.
    pub path: String,
    /// Further headers. `{last-modified}` stands for the time of the catalog.
    #[serde(default)]
    pub headers: BTreeMap<String, String>,
    /// The body.
    #[serde(default)]
    pub body: String,
    /// The length of a longer body.
    #[serde(default)]
    pub body_bytes: usize,
    /// What catalogd answered.
    pub answer: RecordedAnswer,
}

/// A recorded answer.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RecordedAnswer {
    /// The status code.
    pub status: u16,
    /// The headers that matter.
    pub headers: BTreeMap<String, String>,
    /// The body; none for a longer one, and for a compressed one that was not decompressed.
    pub body: Option<String>,
    /// The length of a longer body.
    pub bytes: Option<usize>,
    /// The number of its lines.
    pub lines: Option<usize>,
    /// Its SHA-256, in hex.
    pub sha256: Option<String>,
}

impl RequestRecording {
    /// Reads both recordings of a folder.
    ///
    /// # Errors
    /// A file is missing, or a line of it is no request.
    pub fn read_all(folder: &Path) -> anyhow::Result<Vec<Self>> {
        [("metas", true, "requests.jsonl"), ("standard", false, "requests-standard.jsonl")]
            .into_iter()
            .map(|(name, metas, file)| {
                let path = folder.join(file);
                let text = std::fs::read_to_string(&path).context(path.display().to_string())?;
                let read = |(number, line): (usize, &str)| {
                    serde_json::from_str(line).with_context(|| format!("{file}:{number}"))
                };
                let requests = (1..).zip(text.lines()).map(read).collect::<Result<_, _>>()?;
                Ok(Self { name, metas, requests })
            })
            .collect()
    }
}

impl RecordedRequest {
    /// Whether it goes to GraphQL, which is not served here.
    pub fn is_graphql(&self) -> bool {
        let path = self.path.split('?').next().unwrap_or_default();
        path.ends_with("/api/v1/graphql")
    }
}
