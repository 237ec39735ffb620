//! The list of masks, each with a reason. Everything else is compared.

use regex::Regex;
use std::sync::LazyLock;

/// The values that a key rule masks.
#[derive(Debug)]
pub enum MaskedType {
    /// Digits other than `0`, as text.
    Digits,
    /// Any text except `None` and texts of the scenario.
    Text,
    /// Any number except numbers of the scenario.
    Number,
}

/// A rule that masks a field by its key, anywhere.
#[derive(Debug)]
pub struct KeyRule {
    /// The key.
    pub key: &'static str,
    /// The values that it masks.
    pub masked_type: MaskedType,
    /// The mask.
    pub mask: &'static str,
    /// Why two servers may differ.
    pub why: &'static str,
}

/// The key rules.
pub const KEY_RULES: &[KeyRule] = &[
    key(
        "resourceVersion",
        MaskedType::Digits,
        "<rv>",
        "counts every write of a server since it began",
    ),
    key("continue", MaskedType::Text, "<continue>", "opaque; holds a revision"),
    key("clusterIP", MaskedType::Text, "<ip>", "allocated at random"),
    key("podIP", MaskedType::Text, "<ip>", "made up by simulated nodes"),
    key("hostIP", MaskedType::Text, "<ip>", "made up by simulated nodes"),
    key("podCIDR", MaskedType::Text, "<ip>", "made up by simulated nodes"),
    key("nodePort", MaskedType::Number, "<port>", "allocated at random"),
    key("healthCheckNodePort", MaskedType::Number, "<port>", "allocated at random"),
    key("ca.crt", MaskedType::Text, "<pem>", "a server's own certificates"),
    key("observedTime", MaskedType::Text, "<time>", "when it was looked at"),
];

const fn key(
    key: &'static str,
    masked_type: MaskedType,
    mask: &'static str,
    why: &'static str,
) -> KeyRule {
    KeyRule { key, masked_type, mask, why }
}

/// The sort order of `managedFields` entries. A server sorts them by the second of their last write
/// first, so that the order depends on the second in which a scenario began. Everything in the
/// entries except their time is compared.
pub const MANAGED_FIELDS_ORDER: [&str; 4] = ["operation", "manager", "apiVersion", "subresource"];

/// Labels with hashes of Go's memory layout; the hashes are learned.
pub const HASH_LABELS: &[&str] =
    &["pod-template-hash", "controller-revision-hash", "controller.kubernetes.io/hash"];

/// A rule that masks a pattern in texts.
#[derive(Debug)]
pub struct TextMask {
    /// The pattern. A group `value` is the part that the scenario may have written.
    pub pattern: Regex,
    /// The mask, with groups as `$1`.
    pub mask: &'static str,
    /// Whether words of the scenario stay.
    pub unless_written: bool,
    /// Why two servers may differ.
    pub why: &'static str,
}

#[expect(clippy::expect_used, reason = "the patterns are fixed and a test compiles them")]
fn text(pattern: &str, mask: &'static str, unless_written: bool, why: &'static str) -> TextMask {
    TextMask { pattern: Regex::new(pattern).expect("a pattern"), mask, unless_written, why }
}

/// Rules for every text: of responses and of kubectl's output.
pub static TEXT_RULES: LazyLock<Vec<TextMask>> = LazyLock::new(|| {
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

/// Rules for output for people, in which only the form identifies a value.
pub static PRINTED_TEXT_RULES: LazyLock<Vec<TextMask>> = LazyLock::new(|| {
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
            r"\b(?P<value>3[0-2]\d{3})(?P<tail>/(TCP|UDP|SCTP))",
            "<port>$tail",
            true,
            "allocated node ports",
        ),
        text(r"(?i)(nodePort: )(?P<value>3[0-2]\d{3})\b", "$1<port>", true, "allocated node ports"),
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

/// Masks of values of varying length: they shift the columns beside them.
pub const VARIABLE_WIDTH_MASKS: &[&str] =
    &["<age>", "<ip>", "<hash>", "<token>", "<rv>", "<port>", "<date>", "<pem>"];

/// Blanks that align columns.
#[expect(clippy::expect_used, reason = "the pattern is fixed and a test compiles it")]
pub static ALIGNMENT: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(r"(\S) {2,}").expect("a pattern"));

/// A table cell with an age.
#[expect(clippy::expect_used, reason = "the pattern is fixed and a test compiles it")]
pub static AGE: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(r"^(\d+[ywdhms]){1,3}$").expect("a pattern"));

/// The mask of an age.
pub const AGE_MASK: &str = "<age>";

/// Whether the causes of an error are conflicts of server-side apply.
pub fn is_conflict(causes: &[serde_json::Value]) -> bool {
    causes.iter().all(|cause| cause["reason"] == "FieldManagerConflict")
}
