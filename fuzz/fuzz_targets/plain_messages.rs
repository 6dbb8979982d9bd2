#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| carillon::fuzzing::plain_messages(data));
