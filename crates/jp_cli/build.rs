//! Packs the relocations of the program, so that it starts faster: the loader applies tens of thousands of them before `main`,
//! and packed they take a fiftieth of the space. glibc supports the format since 2.36, and older versions refuse to run such
//! a program. Set `JP_PORTABLE` to build a program that runs on them, too.

use std::{env, process::Command};

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-env-changed=JP_PORTABLE");
    let target = env::var("TARGET").unwrap_or_default();
    let is_for_this_machine =
        env::var("HOST").as_ref() == Ok(&target) && env::var_os("JP_PORTABLE").is_none();
    if is_for_this_machine && target.ends_with("linux-gnu") && glibc_version() >= Some([2, 36]) {
        println!("cargo::rustc-link-arg-bins=-Wl,-z,pack-relative-relocs");
    }
}

/// Returns the version of this machine's glibc.
fn glibc_version() -> Option<[u32; 2]> {
    let output = Command::new("getconf")
        .arg("GNU_LIBC_VERSION")
        .output()
        .ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    let mut numbers = text
        .trim()
        .strip_prefix("glibc ")?
        .split('.')
        .map(str::parse);
    Some([numbers.next()?.ok()?, numbers.next()?.ok()?])
}
