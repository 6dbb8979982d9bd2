#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| carillon::fuzzing::node_messages(data));
