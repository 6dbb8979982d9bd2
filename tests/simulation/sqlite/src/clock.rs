//! A virtual file system that is SQLite's own for databases in memory (`memdb`), except for its clock; and which statement is interrupted.

use libsqlite3_sys::{SQLITE_OK, sqlite3_int64, sqlite3_vfs, sqlite3_vfs_find, sqlite3_vfs_register};
use std::ffi::{CStr, CString, c_int};
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};

/// The Unix epoch as SQLite counts, in milliseconds of Julian days.
const UNIX_EPOCH_MS: i64 = 210_866_760_000_000;

/// How the names of all of them begin.
const NAMED: &str = "carillon-clock-";

/// The number of the next one.
static NEXT: AtomicU64 = AtomicU64::new(0);

/// One clock. It is registered for good: a connection may outlive its database by a moment, and it takes but some hundred bytes.
#[derive(Debug, Clone, Copy)]
pub struct Clock(&'static ClockVfs);

#[derive(Debug)]
#[repr(C)]
pub struct ClockVfs {
    /// First: SQLite hands a pointer to it back, from which the rest is found.
    vfs: sqlite3_vfs,
    name: CString,
    now_ms: AtomicI64,
    /// The statement that is interrupted, of those that come: 1 is the next one; 0 and less: none.
    interrupted: AtomicI64,
}

impl ClockVfs {
    /// Whether it is the first field of one.
    pub fn is_one(vfs: *const sqlite3_vfs) -> bool {
        // SAFETY: a `vfs` that SQLite names is there for good, and so is its name.
        let name = unsafe { vfs.as_ref().map(|vfs| CStr::from_ptr(vfs.zName)) };
        name.is_some_and(|name| name.to_bytes().starts_with(NAMED.as_bytes()))
    }

    /// Whether the statement that begins now is interrupted.
    pub fn is_interrupted(&self) -> bool {
        self.interrupted.fetch_sub(1, Ordering::SeqCst) == 1
    }
}

// SAFETY: SQLite changes nothing of a registered `vfs` but its link to the next one, under a lock of its own; here nothing of
// it is touched any more. The rest can be shared.
unsafe impl Sync for ClockVfs {}
// SAFETY: as above; it is never moved.
unsafe impl Send for ClockVfs {}

impl Clock {
    /// Registers one.
    pub fn new() -> Self {
        let name = format!("{NAMED}{}", NEXT.fetch_add(1, Ordering::Relaxed));
        let name = CString::new(name).expect("there is no zero byte in it");
        // SAFETY: the name is a C string. What is found is SQLite's own and stays.
        let memory = unsafe { sqlite3_vfs_find(c"memdb".as_ptr()).as_ref() }.expect("SQLite has databases in memory");
        let vfs = sqlite3_vfs {
            pNext: std::ptr::null_mut(),
            zName: name.as_ptr(),
            xCurrentTimeInt64: Some(current_time),
            ..*memory
        };
        let clock: *mut ClockVfs =
            Box::into_raw(Box::new(ClockVfs { vfs, name, now_ms: 0.into(), interrupted: 0.into() }));
        // SAFETY: `clock` is never freed, and so are its name and its `vfs`, which is its first field.
        let registered = unsafe { sqlite3_vfs_register(clock.cast(), 0) };
        assert_eq!(registered, SQLITE_OK, "registering a clock");
        // SAFETY: it is never freed, and only its atomic field changes here.
        Self(unsafe { &*clock })
    }

    /// The name of its file system.
    pub fn vfs(self) -> &'static CStr {
        &self.0.name
    }

    /// Interrupts a statement of those that come: 1 is the next one; 0: none.
    pub fn interrupt(self, number: i64) {
        self.0.interrupted.store(number, Ordering::SeqCst);
    }

    /// Sets it, epoch ms.
    pub fn set(self, now_ms: i64) {
        self.0.now_ms.store(now_ms, Ordering::SeqCst);
    }
}

/// SQLite's question for the time, in milliseconds of Julian days.
unsafe extern "C" fn current_time(vfs: *mut sqlite3_vfs, now: *mut sqlite3_int64) -> c_int {
    // SAFETY: SQLite asks with the `vfs` that was registered with this function: the first field of a `ClockVfs`, to which the
    // pointer was made. `now` is a place for the answer.
    unsafe {
        *now = UNIX_EPOCH_MS + (*vfs.cast::<ClockVfs>()).now_ms.load(Ordering::SeqCst);
    }
    SQLITE_OK
}
