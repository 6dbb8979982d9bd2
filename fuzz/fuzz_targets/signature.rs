#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    carillon::fuzzing::signature(data);
    carillon_executor::fuzzing::signature(data);
});
