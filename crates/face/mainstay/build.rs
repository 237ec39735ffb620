//! How the binary is linked.

use std::env;
use std::process::Command;

/// The first release of the GNU C library that reads packed relocations.
const PACKED_RELOCATIONS: (u32, u32) = (2, 36);

/// Addresses that the loader fills in are written as a bitmap where the loader can read that: 24 bytes
/// for each of some 75,000 are 1.8 MB of the file, all of which a start reads. Linkers that do not know
/// the option warn and go on.
#[expect(clippy::disallowed_methods, reason = "what Cargo tells a build script is its environment")]
fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    let of_target = |name: &str| env::var(name).unwrap_or_default();
    let is_gnu =
        of_target("CARGO_CFG_TARGET_OS") == "linux" && of_target("CARGO_CFG_TARGET_ENV") == "gnu";
    // The library of another machine cannot be asked.
    let is_native = of_target("HOST") == of_target("TARGET");
    if is_gnu && is_native && c_library().is_some_and(|version| version >= PACKED_RELOCATIONS) {
        println!("cargo::rustc-link-arg-bins=-Wl,-z,pack-relative-relocs");
    }
}

/// The version of the GNU C library of this machine, if that can be found out.
fn c_library() -> Option<(u32, u32)> {
    let answer = Command::new("getconf").arg("GNU_LIBC_VERSION").output().ok()?;
    let answer = String::from_utf8(answer.stdout).ok()?;
    let (major, minor) = answer.trim().strip_prefix("glibc ")?.split_once('.')?;
    let minor = minor.split('.').next()?;
    Some((major.parse().ok()?, minor.parse().ok()?))
}
