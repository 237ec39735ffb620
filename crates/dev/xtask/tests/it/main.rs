//! `cargo xtask check` as a test: whoever runs the tests also learns of a wrong arrow between crates and of a stale file.

use std::process::Command;

#[test]
fn layers_words_pages_and_generated_files_are_right() {
    let output = Command::new(env!("CARGO_BIN_EXE_xtask")).arg("check").output().unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    assert!(output.status.success(), "{}{}", text(&output.stdout), text(&output.stderr));
}
