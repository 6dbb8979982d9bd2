//! The integration tests of the node, as one binary: `cargo test -p carillon --test it openapi` runs those of one file.

mod command;
mod cron;
mod errors;
mod fields;
mod openapi;
mod permissions;
mod races;
mod schedule;
mod structure;

/// A file that is not named here would never run.
#[test]
fn every_file_is_part_of_this_binary() {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests");
    let here = std::fs::read_to_string(folder.join("it.rs")).expect("this file is there");
    for entry in std::fs::read_dir(folder).expect("the folder is there") {
        let name = entry.expect("it can be read").file_name().into_string().expect("names are UTF-8");
        let Some(module) = name.strip_suffix(".rs") else { continue };
        assert!(
            ["it", "allocations"].contains(&module) || here.contains(&format!("\nmod {module};\n")),
            "tests/it.rs does not name tests/{name}"
        );
    }
}
