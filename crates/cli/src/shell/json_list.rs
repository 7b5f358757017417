//! A list in JSON that is written piece by piece.

use serde_json::Value;

use super::{CommandError, Output};

/// A list that has begun.
#[derive(Debug, Default)]
pub struct JsonList {
    begun: bool,
}

impl JsonList {
    /// Appends a value.
    pub fn push(&mut self, value: &Value, out: &mut Output) -> Result<(), CommandError> {
        let mark = if self.begun { "," } else { "[" };
        self.begun = true;
        out.raw(mark.as_bytes())?;
        out.raw(value.to_string().as_bytes())
    }

    /// Ends the list.
    pub fn end(self, out: &mut Output) -> Result<(), CommandError> {
        out.line(if self.begun { "]" } else { "[]" })
    }
}
