//! Gives the shared library its soname, which carries the ABI's number.

fn main() {
    println!("cargo:rustc-cdylib-link-arg=-Wl,-soname,libhob.so.1");
    println!("cargo:rerun-if-changed=build.rs");
}
