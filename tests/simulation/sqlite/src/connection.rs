//! The little of SQLite's interface that copies whole databases.

use libsqlite3_sys::{
    SQLITE_DONE, SQLITE_OK, SQLITE_OPEN_CREATE, SQLITE_OPEN_FULLMUTEX, SQLITE_OPEN_READWRITE, sqlite3,
    sqlite3_backup_finish, sqlite3_backup_init, sqlite3_backup_step, sqlite3_busy_timeout, sqlite3_close,
    sqlite3_open_v2,
};
use std::ffi::{CStr, CString};
use std::ptr::{NonNull, null, null_mut};

/// A connection waits for locks no longer than this, ms. Nobody holds one for long.
const LOCK_WAIT_MS: i32 = 10_000;

/// A connection to a database.
#[derive(Debug)]
pub struct Connection(NonNull<sqlite3>);

// SAFETY: it is opened for use by one thread after the other (`SQLITE_OPEN_FULLMUTEX` allows more).
unsafe impl Send for Connection {}

impl Connection {
    /// Opens or makes the database of that name.
    pub fn open(name: &str, vfs: Option<&CStr>) -> Self {
        let name = CString::new(name).expect("a path without a zero byte");
        let flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_FULLMUTEX;
        let mut handle = null_mut();
        // SAFETY: both names are C strings, or no VFS is named; `handle` is a place for the answer.
        let opened =
            unsafe { sqlite3_open_v2(name.as_ptr(), &raw mut handle, flags, vfs.map_or(null(), CStr::as_ptr)) };
        assert_eq!(opened, SQLITE_OK, "opening {name:?}");
        let connection = Self(NonNull::new(handle).expect("it is open"));
        // SAFETY: the connection is open.
        unsafe { sqlite3_busy_timeout(connection.0.as_ptr(), LOCK_WAIT_MS) };
        connection
    }

    /// Makes the database the same as the other one.
    pub fn copy_from(&mut self, other: &mut Self) {
        let main = c"main".as_ptr();
        // SAFETY: both connections are open, nobody else uses them meanwhile, and the copy is finished before it returns.
        let copied = unsafe {
            let copy = sqlite3_backup_init(self.0.as_ptr(), main, other.0.as_ptr(), main);
            assert!(!copy.is_null(), "beginning to copy a database");
            let stepped = sqlite3_backup_step(copy, -1);
            (stepped, sqlite3_backup_finish(copy))
        };
        assert_eq!(copied, (SQLITE_DONE, SQLITE_OK), "copying a database");
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        // SAFETY: it is open and not used any more.
        unsafe { sqlite3_close(self.0.as_ptr()) };
    }
}
