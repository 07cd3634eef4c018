//! Tells the program how it was built: by which compiler, for what, and how hard it was optimised.

use std::env;
use std::process::Command;

fn main() {
    let of = |name: &str| env::var(name).unwrap_or_default();
    let version = Command::new(of("RUSTC")).arg("--version").output();
    let version = version.map(|output| String::from_utf8_lossy(&output.stdout).trim().to_owned());
    println!("cargo:rustc-env=HOB_RUSTC={}", version.unwrap_or_default());
    println!("cargo:rustc-env=HOB_TARGET={}", of("TARGET"));
    println!("cargo:rustc-env=HOB_PROFILE={}", of("PROFILE"));
    println!("cargo:rustc-env=HOB_OPT_LEVEL={}", of("OPT_LEVEL"));
    println!("cargo:rerun-if-changed=build.rs");
}
