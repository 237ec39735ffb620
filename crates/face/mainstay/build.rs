//! How the binary is linked.

use std::path::Path;
use std::process::Command;
use std::{env, fs};

/// The first release of the GNU C library that reads packed relocations.
const PACKED_RELOCATIONS: (u32, u32) = (2, 36);

/// Folds functions with the same code into one, also if their addresses are taken. Of what is linked here, SQLite
/// compares addresses of functions: those of a few whose code differs from that of all others in their place.
const FOLD_EQUAL_FUNCTIONS: &str = "-Wl,--icf=all";

/// A release folds functions with the same code if the linker can do that: crates that are compiled for
/// speed have their own copies of generic code.
///
/// Addresses that the loader fills in are written as a bitmap where the loader can read that: 24 bytes
/// for each of some 75,000 are 1.8 MB of the file, all of which a start reads. Linkers that do not know
/// the option warn and go on.
#[expect(clippy::disallowed_methods, reason = "what Cargo tells a build script is its environment")]
fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    let of_target = |name: &str| env::var(name).unwrap_or_default();
    let is_gnu =
        of_target("CARGO_CFG_TARGET_OS") == "linux" && of_target("CARGO_CFG_TARGET_ENV") == "gnu";
    if of_target("PROFILE") == "release" && linker_knows(FOLD_EQUAL_FUNCTIONS) {
        println!("cargo::rustc-link-arg-bins={FOLD_EQUAL_FUNCTIONS}");
    }
    // The library of another machine cannot be asked.
    let is_native = of_target("HOST") == of_target("TARGET");
    if is_gnu && is_native && c_library().is_some_and(|version| version >= PACKED_RELOCATIONS) {
        println!("cargo::rustc-link-arg-bins=-Wl,-z,pack-relative-relocs");
    }
}

/// Whether a program can be linked with a flag: linkers refuse flags that they do not know.
#[expect(clippy::disallowed_methods, reason = "what Cargo tells a build script is its environment")]
fn linker_knows(flag: &str) -> bool {
    let (Some(folder), Some(compiler)) = (env::var_os("OUT_DIR"), env::var_os("RUSTC")) else {
        return false;
    };
    let folder = Path::new(&folder);
    let source = folder.join("linked.rs");
    if fs::write(&source, "fn main() {}").is_err() {
        return false;
    }
    let mut command = Command::new(compiler);
    command
        .arg(&source)
        .arg("-o")
        .arg(folder.join("linked"))
        .args(["-C", &format!("link-arg={flag}")]);
    command.args(["--target", &env::var("TARGET").unwrap_or_default()]);
    if let Some(linker) = env::var_os("RUSTC_LINKER") {
        let mut argument = std::ffi::OsString::from("linker=");
        argument.push(linker);
        command.arg("-C").arg(argument);
    }
    let flags = env::var("CARGO_ENCODED_RUSTFLAGS").unwrap_or_default();
    command.args(flags.split('\u{1f}').filter(|flag| !flag.is_empty()));
    command.output().is_ok_and(|output| output.status.success())
}

/// The version of the GNU C library of this machine, if that can be found out.
fn c_library() -> Option<(u32, u32)> {
    let answer = Command::new("getconf").arg("GNU_LIBC_VERSION").output().ok()?;
    let answer = String::from_utf8(answer.stdout).ok()?;
    let (major, minor) = answer.trim().strip_prefix("glibc ")?.split_once('.')?;
    let minor = minor.split('.').next()?;
    Some((major.parse().ok()?, minor.parse().ok()?))
}
