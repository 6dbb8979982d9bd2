//! Lines that show whether they are whole: `<crc32> <json>\n`.

/// What a line says; `None` when it is torn or damaged.
pub(crate) fn payload(line: &[u8]) -> Option<&[u8]> {
    let (sum, json) = line.strip_suffix(b"\n")?.split_at_checked(9)?;
    let sum = std::str::from_utf8(sum).ok()?.strip_suffix(' ')?;
    (u32::from_str_radix(sum, 16).ok()? == crc32(json)).then_some(json)
}

/// Adds a line.
pub(crate) fn line(text: &mut Vec<u8>, json: &[u8]) {
    text.extend_from_slice(format!("{:08x} ", crc32(json)).as_bytes());
    text.extend_from_slice(json);
    text.push(b'\n');
}

const CRC_TABLE: [u32; 256] = crc_table();

const fn crc_table() -> [u32; 256] {
    let mut table = [0u32; 256];
    let mut index = 0;
    while index < 256 {
        let mut value = index as u32;
        let mut bit = 0;
        while bit < 8 {
            value = if value & 1 == 1 { 0xEDB8_8320 ^ (value >> 1) } else { value >> 1 };
            bit += 1;
        }
        table[index] = value;
        index += 1;
    }
    table
}

/// CRC-32 (IEEE 802.3).
fn crc32(bytes: &[u8]) -> u32 {
    !bytes.iter().fold(!0u32, |sum, byte| CRC_TABLE[((sum ^ u32::from(*byte)) & 0xFF) as usize] ^ (sum >> 8))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_checksum_is_the_common_one() {
        assert_eq!(crc32(b"123456789"), 0xCBF4_3926);
    }
}
