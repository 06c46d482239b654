//! Makes the program start faster where its machine allows it: tens of thousands of addresses are filled in before `main`
//! begins, and packed they take a fiftieth of the room. glibc reads that from 2.36 on, and before refuses to run it: with
//! `JP_PORTABLE` set, the program is one for older systems, too.

use std::{env, process::Command};

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-env-changed=JP_PORTABLE");
    let variable = |name: &str| env::var(name).unwrap_or_default();
    let is_for_this_machine =
        variable("HOST") == variable("TARGET") && env::var_os("JP_PORTABLE").is_none();
    if is_for_this_machine && variable("TARGET").ends_with("linux-gnu") && glibc() >= Some([2, 36])
    {
        println!("cargo::rustc-link-arg-bins=-Wl,-z,pack-relative-relocs");
    }
}

/// Returns the version of this machine's glibc.
fn glibc() -> Option<[u32; 2]> {
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
