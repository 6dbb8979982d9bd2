//! Statements that fail: the one that is named is interrupted before it has done anything, as by a full disk or a server's
//! limit. SQLite rolls back the transaction of an interrupted statement that writes, and leaves that of one that only reads.

use crate::clock::ClockVfs;
use libsqlite3_sys::{
    SQLITE_FCNTL_VFS_POINTER, SQLITE_OK, SQLITE_TRACE_STMT, sqlite3, sqlite3_api_routines, sqlite3_auto_extension,
    sqlite3_db_handle, sqlite3_file_control, sqlite3_interrupt, sqlite3_stmt, sqlite3_trace_v2, sqlite3_vfs,
};
use std::ffi::{c_char, c_int, c_uint, c_void};
use std::sync::Once;

static WATCHING: Once = Once::new();

/// From now on each new connection of this process to a simulated database is watched.
pub fn watch() {
    WATCHING.call_once(|| {
        // SAFETY: `watch_connection` is such an entry point.
        let asked = unsafe { sqlite3_auto_extension(Some(watch_connection)) };
        assert_eq!(asked, SQLITE_OK, "asking for new connections");
    });
}

/// SQLite has opened a connection.
unsafe extern "C" fn watch_connection(db: *mut sqlite3, _: *mut *mut c_char, _: *const sqlite3_api_routines) -> c_int {
    let mut vfs: *mut sqlite3_vfs = std::ptr::null_mut();
    // SAFETY: `db` is open, and `vfs` is a place for the answer. A `vfs` of ours is the first field of a `ClockVfs`, which is
    // never freed. The statement's function keeps to what SQLite asks of it.
    unsafe {
        let found = sqlite3_file_control(db, c"main".as_ptr(), SQLITE_FCNTL_VFS_POINTER, (&raw mut vfs).cast());
        if found == SQLITE_OK && ClockVfs::is_one(vfs) {
            sqlite3_trace_v2(db, SQLITE_TRACE_STMT, Some(begin_statement), vfs.cast());
        }
    }
    SQLITE_OK
}

/// A statement begins, or a trigger of it, whose text is a comment.
unsafe extern "C" fn begin_statement(
    _: c_uint,
    clock: *mut c_void,
    statement: *mut c_void,
    text: *mut c_void,
) -> c_int {
    // SAFETY: SQLite hands back what it was given, the statement, and its text.
    unsafe {
        let is_trigger = *text.cast::<u8>() == b'-';
        if !is_trigger && (*clock.cast::<ClockVfs>()).is_interrupted() {
            sqlite3_interrupt(sqlite3_db_handle(statement.cast::<sqlite3_stmt>()));
        }
    }
    0
}
