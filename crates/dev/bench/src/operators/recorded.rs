//! Recorded figures of OLM on a real API server with simulated pods, on another machine. They show
//! the order of magnitude and are not compared.

/// OLM's recorded figures for a row of the table.
pub(super) fn olm(key: &str) -> Option<&'static str> {
    Some(match key {
        "one-by-one" => "8.9 s, p99 11 s; 143 writes, 300 ms",
        "at-once" => "54 s",
        "waiting" => "a third of a core; 79 reads a second",
        "refused" => "13 writes a second",
        "more-copies" => "38 s",
        "changed" => "6.4 s",
        "restart-copies" => "39 s; 9,720 writes",
        _ => return None,
    })
}
