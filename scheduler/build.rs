//! Takes the web console into the binary: copies what `npm run build` has made in `console-web/dist` to where `rust-embed`
//! embeds it from, and compresses it once. Without a console the copy is empty, and the node serves a page that says how
//! to build it.

use anyhow::{Context, Result};
use flate2::Compression;
use flate2::write::GzEncoder;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::SystemTime;
use std::{env, fs};

/// A compressed file is kept when it takes at most this share of the plain one, percent: pictures and fonts are compressed.
const WORTH_PERCENT: usize = 90;

/// A nonce is written into it for each answer, so that it cannot be compressed beforehand.
const PAGE: &str = "index.html";

fn main() -> Result<()> {
    let dist = PathBuf::from(env::var("CARGO_MANIFEST_DIR")?).join("../console-web/dist");
    if !dist.exists() {
        make_watched(&dist);
    }
    println!("cargo:rerun-if-changed={}", dist.display());
    let embedded = PathBuf::from(env::var("OUT_DIR")?).join("console");
    if embedded.exists() {
        fs::remove_dir_all(&embedded).context("what was embedded before cannot be removed")?;
    }
    fs::create_dir_all(&embedded)?;
    // Half a console is none.
    if dist.join(PAGE).is_file() {
        copy(&dist, &embedded).with_context(|| format!("{} cannot be embedded", dist.display()))?;
    }
    // `rust-embed` looks up variables in paths only with crates that are not licensed as ours are.
    let folder = embedded.to_str().context("cargo's target folder has a name that is not UTF-8")?;
    let code = format!("#[derive(rust_embed::Embed)]\n#[folder = {folder:?}]\nstruct Embedded;\n");
    fs::write(embedded.with_extension("rs"), code)?;
    Ok(())
}

/// Makes the folder that cargo watches: it takes one that is not there, or is newer than this run, for changed, and would build
/// the crate again the next time. Where none can be made, that is all that happens.
fn make_watched(dist: &Path) {
    let made = fs::create_dir_all(dist).and_then(|()| fs::File::open(dist));
    if let Err(error) = made.and_then(|folder| folder.set_modified(SystemTime::UNIX_EPOCH)) {
        println!("cargo:warning={} cannot be made, so that each build starts over: {error}", dist.display());
    }
}

fn copy(from: &Path, to: &Path) -> Result<()> {
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let target = to.join(entry.file_name());
        if entry.file_type()?.is_dir() {
            fs::create_dir_all(&target)?;
            copy(&entry.path(), &target)?;
            continue;
        }
        let plain = fs::read(entry.path())?;
        fs::write(&target, &plain)?;
        if entry.file_name() != PAGE {
            compress(&plain, &target)?;
        }
    }
    Ok(())
}

/// Writes `<target>.gz`, where that saves something.
fn compress(plain: &[u8], target: &Path) -> Result<()> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(plain)?;
    let compressed = encoder.finish()?;
    if compressed.len() * 100 <= plain.len() * WORTH_PERCENT {
        let mut name = target.as_os_str().to_owned();
        name.push(".gz");
        fs::write(name, compressed)?;
    }
    Ok(())
}
