#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| carillon_executor::fuzzing::executor_messages(data));
