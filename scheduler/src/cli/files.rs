//! Files named by the user, and private files.

use anyhow::{Context, anyhow, bail};
use std::fs::{DirBuilder, File, OpenOptions, Permissions};
use std::io::{Read, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _, PermissionsExt as _};
use std::path::Path;

/// The file's text, and what to call it; `-` is standard input. At most `max` bytes.
pub fn read_text(file: &Path, max: u64) -> anyhow::Result<(String, String)> {
    let is_standard = file == Path::new("-");
    let place = if is_standard { "standard input".to_owned() } else { file.display().to_string() };
    let mut bytes = Vec::new();
    let read = if is_standard {
        std::io::stdin().lock().take(max + 1).read_to_end(&mut bytes)
    } else {
        File::open(file).and_then(|open| open.take(max + 1).read_to_end(&mut bytes))
    };
    read.with_context(|| format!("{place} cannot be read"))?;
    if bytes.len() as u64 > max {
        bail!("{place} is larger than {max} bytes{}; split it", mebibytes(max));
    }
    let text = String::from_utf8(bytes).map_err(|error| {
        anyhow!("{place} is not UTF-8 (after {} bytes); save it as UTF-8", error.utf8_error().valid_up_to())
    })?;
    Ok((text, place))
}

fn mebibytes(bytes: u64) -> String {
    if bytes >= 1 << 20 { format!(" ({} MiB)", bytes >> 20) } else { String::new() }
}

/// Writes a file that only its owner may read, atomically.
pub fn write_private(file: &Path, text: &str) -> anyhow::Result<()> {
    let unusable = || format!("{} cannot be written", file.display());
    let mut name = file.file_name().with_context(unusable)?.to_owned();
    name.push(format!(".{}", std::process::id()));
    let draft = file.with_file_name(name);
    let written = write_new(&draft, text).and_then(|()| std::fs::rename(&draft, file));
    if written.is_err() {
        // A half-written draft is useless; the first error is the one that counts.
        let _ = std::fs::remove_file(&draft);
    }
    written.with_context(unusable)
}

fn write_new(file: &Path, text: &str) -> std::io::Result<()> {
    let mut open = OpenOptions::new().write(true).create_new(true).mode(0o600).open(file)?;
    open.write_all(text.as_bytes())?;
    open.sync_all()
}

/// Makes a folder that only its owner may enter.
pub fn make_private_folder(folder: &Path) -> anyhow::Result<()> {
    let made = DirBuilder::new().recursive(true).mode(0o700).create(folder);
    made.and_then(|()| std::fs::set_permissions(folder, Permissions::from_mode(0o700)))
        .with_context(|| format!("the folder {} cannot be created", folder.display()))
}
