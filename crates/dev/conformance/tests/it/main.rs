//! The program `mainstay-conformance`. These tests also make `cargo test` build it: `.ci/run` hunts
//! seeded faults with that build.

use std::process::Command;

#[test]
fn the_program_finds_its_scenarios() {
    let output = Command::new(env!("CARGO_BIN_EXE_mainstay-conformance"))
        .args(["list", "--area", "apply"])
        .output()
        .expect("it runs");
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert!(text.contains("apply"), "{text}");
}

#[test]
fn an_area_without_scenarios_is_an_error() {
    let output = Command::new(env!("CARGO_BIN_EXE_mainstay-conformance"))
        .args(["check", "--area", "none"])
        .output()
        .expect("it runs");
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success());
    assert!(error.contains("no scenario is meant by that"), "{error}");
}
