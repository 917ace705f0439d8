//! The checksum of a row, by values of SQLite: as a function of SQL, and without it.

use super::ID_BITS;
use crate::error::Result;
use rusqlite::Connection;
use rusqlite::functions::FunctionFlags;
use rusqlite::types::ValueRef;

/// Bytes that are gathered before they are summed: a call of the sum costs more than its bytes.
const SHORT: usize = 512;
/// Bytes of a value's kind and length.
const HEAD: usize = 9;

/// The CRC-32 of the values of a row, each with its kind and length.
struct RowSum {
    sum: crc32fast::Hasher,
    short: [u8; SHORT],
    held: usize,
}

impl RowSum {
    fn new() -> Self {
        Self {
            sum: crc32fast::Hasher::new(),
            short: [0; SHORT],
            held: 0,
        }
    }

    fn add(&mut self, value: ValueRef<'_>) {
        match value {
            ValueRef::Null => self.put(0, &[]),
            ValueRef::Integer(x) => self.put(1, &x.to_le_bytes()),
            // What is written as -0.0 is read as 0.0.
            ValueRef::Real(x) => self.put(2, &(x + 0.0).to_bits().to_le_bytes()),
            ValueRef::Text(t) => self.put(3, t),
            ValueRef::Blob(b) => self.put(4, b),
        }
    }

    fn put(&mut self, kind: u8, bytes: &[u8]) {
        let mut head = [kind; HEAD];
        head[1..].copy_from_slice(&(bytes.len() as u64).to_le_bytes());
        self.gather(&head);
        if bytes.len() <= SHORT {
            self.gather(bytes);
        } else {
            self.flush();
            self.sum.update(bytes);
        }
    }

    fn gather(&mut self, bytes: &[u8]) {
        if self.held + bytes.len() > SHORT {
            self.flush();
        }
        self.short[self.held..self.held + bytes.len()].copy_from_slice(bytes);
        self.held += bytes.len();
    }

    fn flush(&mut self) {
        self.sum.update(&self.short[..self.held]);
        self.held = 0;
    }

    fn finish(mut self) -> i64 {
        self.flush();
        i64::from(self.sum.finalize())
    }
}

/// Makes `row_sum` known: the sum of its arguments.
pub fn register(conn: &Connection) -> Result<()> {
    let flags = FunctionFlags::SQLITE_UTF8
        | FunctionFlags::SQLITE_DETERMINISTIC
        | FunctionFlags::SQLITE_INNOCUOUS;
    conn.create_scalar_function("row_sum", -1, flags, |values| {
        let mut sum = RowSum::new();
        for i in 0..values.len() {
            sum.add(values.get_raw(i));
        }
        Ok(sum.finish())
    })?;
    Ok(())
}

/// The sum of a row whose first `keys` values are keys of turns; the same as in SQL.
pub fn of_row(keys: usize, values: &[ValueRef<'_>]) -> i64 {
    let mut sum = RowSum::new();
    for (i, value) in values.iter().enumerate() {
        match *value {
            ValueRef::Integer(key) if i < keys => {
                sum.add(ValueRef::Integer(key & ((1 << ID_BITS) - 1)));
            }
            other => sum.add(other),
        }
    }
    sum.finish()
}

/// What the sum of a turn changes by, bit for bit, when it is archived: `archived` is the
/// last of what is summed, and a CRC is linear. A sum that was wrong stays wrong.
pub fn archiving() -> i64 {
    of_row(0, &[ValueRef::Integer(0)]) ^ of_row(0, &[ValueRef::Integer(1)])
}
