//! The list of masks. Each has a reason; whatever is not here is compared.

use regex::Regex;
use std::sync::LazyLock;

/// What a field must hold for its name to mask it.
#[derive(Debug)]
pub enum By {
    /// Digits other than `0`, as text.
    Digits,
    /// Any text that the scenario did not write (and that is not `None`).
    Text,
    /// Any number that the scenario did not write.
    Number,
}

/// A field whose value is masked, wherever it is.
#[derive(Debug)]
pub struct Key {
    /// Its name.
    pub key: &'static str,
    /// What it must hold.
    pub by: By,
    /// What stands there instead.
    pub mask: &'static str,
    /// Why two servers may differ.
    pub why: &'static str,
}

/// Fields.
pub const KEYS: &[Key] = &[
    key("resourceVersion", By::Digits, "<rv>", "counts every write of a server since it began"),
    key("continue", By::Text, "<continue>", "opaque; holds a revision"),
    key("clusterIP", By::Text, "<ip>", "allocated at random"),
    key("podIP", By::Text, "<ip>", "made up by simulated nodes"),
    key("hostIP", By::Text, "<ip>", "made up by simulated nodes"),
    key("podCIDR", By::Text, "<ip>", "made up by simulated nodes"),
    key("nodePort", By::Number, "<port>", "allocated at random"),
    key("healthCheckNodePort", By::Number, "<port>", "allocated at random"),
    key("ca.crt", By::Text, "<pem>", "a server's own certificates"),
    key("observedTime", By::Text, "<time>", "when it was looked at"),
];

const fn key(key: &'static str, by: By, mask: &'static str, why: &'static str) -> Key {
    Key { key, by, mask, why }
}

/// Entries of `managedFields` are put in the order of these fields: a server orders them by the second
/// of their last write first, so that it depends on when in a second a scenario began. Everything in
/// the entries but their time is compared.
pub const MANAGERS: [&str; 4] = ["operation", "manager", "apiVersion", "subresource"];

/// Labels whose values are hashes of Go's memory layout, printed; the words are learned.
pub const HASHES: &[&str] =
    &["pod-template-hash", "controller-revision-hash", "controller.kubernetes.io/hash"];

/// A pattern that is masked in texts.
#[derive(Debug)]
pub struct Text {
    /// What is looked for. A group `it` is what counts as written by the scenario.
    pub pattern: Regex,
    /// What stands there instead, with groups as `$1`.
    pub mask: &'static str,
    /// Whether words that the scenario wrote stay.
    pub unless_written: bool,
    /// Why two servers may differ.
    pub why: &'static str,
}

#[expect(clippy::expect_used, reason = "the patterns are fixed and a test compiles them")]
fn text(pattern: &str, mask: &'static str, unless_written: bool, why: &'static str) -> Text {
    Text { pattern: Regex::new(pattern).expect("a pattern"), mask, unless_written, why }
}

/// Patterns in every text: of answers and of what kubectl prints.
pub static TEXTS: LazyLock<Vec<Text>> = LazyLock::new(|| {
    vec![
        text(
            r"\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b",
            "<uid>",
            true,
            "random",
        ),
        text(r"\b\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z", "<microtime>", true, "the time of day"),
        text(
            r"\b\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(Z|[+-]\d\d:\d\d)",
            "<time>",
            true,
            "the time of day",
        ),
        text(r"\beyJ[\w-]+\.[\w-]+\.[\w-]+", "<token>", true, "signed with a server's own key"),
        text(
            r"-----BEGIN [A-Z ]+-----[^-]*-----END [A-Z ]+-----\n?",
            "<pem>",
            true,
            "a server's own certificates",
        ),
        text(r"\b127\.0\.0\.1:\d{4,5}\b", "<address>", true, "a free port of this machine"),
        text(r"\b\d{1,3}\.\d{1,3}\.\d{1,3}\.\d{1,3}\b", "<ip>", true, "allocated or made up"),
        text(
            r"too old resource version: \d+ \(\d+\)",
            "too old resource version: <rv> (<rv>)",
            false,
            "revisions",
        ),
        text(
            r"(Too large resource version: \d+), current: \d+",
            "$1, current: <rv>",
            false,
            "revisions",
        ),
        text(r"(ResourceVersion in object meta: )\d+", "$1<rv>", false, "revisions"),
        text(r"(ResourceVersion in precondition: )\d+", "$1<rv>", false, "revisions"),
        text(r"(the ResourceVersion in the precondition )\(\d+\)", "$1(<rv>)", false, "revisions"),
        text(
            r"(does not match the ResourceVersion in record )\(\d+\)",
            "$1(<rv>)",
            false,
            "revisions",
        ),
        text(
            r#"(?m)(resourceVersion"?: ?"?)[1-9]\d*"#,
            "$1<rv>",
            false,
            "revisions, in printed objects",
        ),
        text(r"(hash=)[0-9A-F]{32,}", "$1<hash>", false, "of documents as a server writes them"),
        text(r"0x[0-9a-f]{8,}", "<pointer>", false, "addresses of a server's memory in messages"),
        text(
            r"https://kubernetes\.default\.svc(\.cluster\.local)?",
            "<issuer>",
            false,
            "of service accounts' tokens: a server's own setting",
        ),
        text(
            r#"(ReplicaSet \\?"[a-z0-9.-]+-)[bcdfghjklmnpqrstvwxz2456789]{8,10}\b"#,
            "$1<hash>",
            false,
            "hashes of Go's memory layout, printed",
        ),
        text(
            r"\bnode-\d\b",
            "<node>",
            true,
            "nodes are simulated, and named by who simulates them",
        ),
        text(
            r"\b(kube-api-access-)[a-z0-9]{5}\b",
            "${1}xxxxx",
            false,
            "random: the volume of a pod's token",
        ),
        text(r"\.[0-9a-f]{16}\b", ".<event>", false, "names of events hold the time of day"),
        text(
            r"\bselfType\d+",
            "selfType<number>",
            false,
            "types of rules are named anew at each look, lest somebody relies on the name",
        ),
    ]
});

/// Patterns in what is printed for people, where nothing but the form tells what a word is.
pub static LOOSE: LazyLock<Vec<Text>> = LazyLock::new(|| {
    vec![
        text(
            r"(?P<lead>^|[\s(])(\d+[ywdhms]){1,3}(?P<tail> ago\)|[\s)]|$)",
            "${lead}<age>$tail",
            false,
            "how long something is there",
        ),
        text(
            r"(?P<lead>^|[\s(])(\d+[ywdhms]){1,3}(?P<tail> ago\)|[\s)]|$)",
            "${lead}<age>$tail",
            false,
            "twice, since neighbours share the blank between them",
        ),
        text(
            r"\b(?P<it>3[0-2]\d{3})(?P<tail>/(TCP|UDP|SCTP))",
            "<port>$tail",
            true,
            "allocated node ports",
        ),
        text(r"(?i)(nodePort: )(?P<it>3[0-2]\d{3})\b", "$1<port>", true, "allocated node ports"),
        text(r"(Resource Version:\s+)\d+", "$1<rv>", false, "revisions"),
        text(
            r"\b(Mon|Tue|Wed|Thu|Fri|Sat|Sun), \d\d \w{3} \d{4} \d\d:\d\d:\d\d [+-]\d{4}",
            "<date>",
            false,
            "the time of day",
        ),
        text(
            r"\b\d{4}-\d\d-\d\d \d\d:\d\d:\d\d(\.\d+)? [+-]\d{4}( UTC)?",
            "<date>",
            false,
            "the time of day, by diff",
        ),
        text(
            r"(?m)^[IWEF]\d{4} \d\d:\d\d:\d\d\.\d{6} +\d+ .*\n",
            "",
            false,
            "lines of kubectl's own log: whether a watch broke while it waited is timing",
        ),
        text(r"/tmp/(LIVE|MERGED)-\d+", "/tmp/$1-<number>", false, "temporary folders of diff"),
        text(r"kubectl-edit-\d+", "kubectl-edit-<number>", false, "temporary files of edit"),
    ]
});

/// Masks of values whose lengths differ: they shift what stands beside them.
pub const UNEVEN: &[&str] =
    &["<age>", "<ip>", "<hash>", "<token>", "<rv>", "<port>", "<date>", "<pem>"];

/// Blanks that align columns.
#[expect(clippy::expect_used, reason = "the pattern is fixed and a test compiles it")]
pub static BLANKS: LazyLock<Regex> = LazyLock::new(|| Regex::new(r"(\S) {2,}").expect("a pattern"));

/// A cell that says how long something is there.
#[expect(clippy::expect_used, reason = "the pattern is fixed and a test compiles it")]
pub static AGE: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(r"^(\d+[ywdhms]){1,3}$").expect("a pattern"));

/// What stands in such a cell instead.
pub const AGE_MASK: &str = "<age>";

/// Whether the causes of a refusal are those of server-side apply.
pub fn is_conflict(causes: &[serde_json::Value]) -> bool {
    causes.iter().all(|cause| cause["reason"] == "FieldManagerConflict")
}
