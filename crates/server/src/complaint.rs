//! A complaint that is made once, however often its cause is met.

use std::fmt::Display;

/// What was complained of last, while it lasts.
#[derive(Debug, Default)]
pub struct Complaint(Option<String>);

impl Complaint {
    /// Whether this was not the last complaint. It is now.
    pub fn is_new(&mut self, cause: impl Display) -> bool {
        let cause = Some(cause.to_string());
        let is_new = self.0 != cause;
        self.0 = cause;
        is_new
    }

    /// The cause is gone: should it come back, that is new.
    pub fn settle(&mut self) {
        self.0 = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_is_new_once() {
        let mut complaint = Complaint::default();
        assert!(complaint.is_new("no file"));
        assert!(!complaint.is_new("no file"));
        assert!(complaint.is_new("no key"));
        complaint.settle();
        assert!(complaint.is_new("no key"));
    }
}
