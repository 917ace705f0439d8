//! Names sought in texts as whole words. Both are folded.

use memchr::memmem::{self, Finder};

/// A name made ready to be sought in many texts.
#[derive(Debug, Clone)]
pub struct Name(Finder<'static>);

impl Name {
    /// Of a folded name.
    pub fn new(name: &str) -> Self {
        Self(Finder::new(name).into_owned())
    }

    /// Whether it occurs in `text` on word boundaries.
    pub fn occurs_in(&self, text: &str) -> bool {
        whole(text, self.0.needle().len(), |rest| self.0.find(rest))
    }
}

/// Whether `name` occurs in `text` on word boundaries.
pub fn contains_words(text: &str, name: &str) -> bool {
    whole(text, name.len(), |rest| memmem::find(rest, name.as_bytes()))
}

/// A name begins and ends with whole characters, and so does each place it is found at.
fn whole(text: &str, length: usize, find: impl Fn(&[u8]) -> Option<usize>) -> bool {
    let mut from = 0;
    while length > 0
        && let Some(skipped) = find(&text.as_bytes()[from..])
    {
        let at = from + skipped;
        let before = text[..at].chars().next_back();
        let after = text[at + length..].chars().next();
        if !before.is_some_and(char::is_alphanumeric) && !after.is_some_and(char::is_alphanumeric) {
            return true;
        }
        // Places may overlap: "x x" in "ax x x".
        from = at + 1;
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_found_as_whole_words_only() {
        for (text, name, found) in [
            ("ask ana's dog", "ana", true),
            ("banana bread", "ana", false),
            ("ax x x", "x x", true),
            ("ax x", "x x", false),
            ("ééa é", "é", true),
            ("éé", "é", false),
            ("", "ana", false),
            ("ana", "", false),
        ] {
            assert_eq!(contains_words(text, name), found, "{name:?} in {text:?}");
            assert_eq!(
                Name::new(name).occurs_in(text),
                found,
                "{name:?} in {text:?}"
            );
        }
    }
}
