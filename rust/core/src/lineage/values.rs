//! Whether two values of one topic can both be true.

/// Whether two values of one topic, each with whether it is denied, exclude each other.
/// To deny one value is not to deny another ("not Rome" and "Porto" are both true), but it
/// denies what says the same and more ("not Portland", "Portland, Oregon"). What merely says
/// less or more is no other value ("Ana" and "Ana Silva"), and so is a number of other things.
pub fn contradict(a: (&str, bool), b: (&str, bool)) -> bool {
    if a.0 == b.0 {
        return a.1 != b.1;
    }
    let has = |value: &str, word: &str| value.split(' ').any(|w| w == word);
    let within = |part: &str, whole: &str| part.split(' ').all(|w| has(whole, w));
    if a.1 || b.1 {
        return a.1 != b.1
            && if a.1 {
                within(a.0, b.0)
            } else {
                within(b.0, a.0)
            };
    }
    if measure_differs(a.0, b.0) {
        return false;
    }
    // "not allergic" holds all of "allergic", and denies it.
    has(a.0, "not") != has(b.0, "not") || !(within(a.0, b.0) || within(b.0, a.0))
}

/// Whether both are a number of something, and not of the same: "10 mb", "5 files". What
/// one unit tells can be told in another of its group ("1 gb", "90 minutes").
fn measure_differs(a: &str, b: &str) -> bool {
    let unit = |value: &str| {
        let (number, unit) = value.split_once(' ')?;
        let counted = number.bytes().all(|b| b.is_ascii_digit() || b == b'.');
        let one = counted && unit.bytes().all(|b| b.is_ascii_lowercase());
        one.then(|| unit.strip_suffix('s').unwrap_or(unit).to_owned())
    };
    let (Some(a), Some(b)) = (unit(a), unit(b)) else {
        return false;
    };
    let both = |units: &&[&str]| units.contains(&&*a) && units.contains(&&*b);
    a != b && !UNITS.iter().any(both)
}

/// Units of one quantity each, without the plural's s.
const UNITS: [&[&str]; 7] = [
    &[
        "m", "second", "minute", "hour", "day", "week", "month", "year",
    ],
    &["dollar", "euro", "pound"],
    &["b", "kb", "mb", "gb", "tb", "pb"],
    &[
        "mm", "cm", "m", "km", "mile", "inch", "inche", "feet", "meter", "metre",
    ],
    &["g", "kg", "pound", "lb"],
    &[
        "january",
        "february",
        "march",
        "april",
        "may",
        "june",
        "july",
        "august",
        "september",
        "october",
        "november",
        "december",
    ],
    &["people", "person", "user", "guest"],
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_denial_denies_what_says_more() {
        assert!(contradict(("portland", true), ("portland oregon", false)));
        assert!(!contradict(("portland", false), ("portland oregon", true)));
    }

    #[test]
    fn numbers_of_different_things_do_not_contradict() {
        let differ = |a, b| contradict((a, false), (b, false));
        for (a, b) in [
            ("10 mb", "5 files"),
            ("3 people", "2 hours"),
            ("80 kg", "180 cm"),
        ] {
            assert!(!differ(a, b), "{a}, {b}");
        }
        for (a, b) in [
            ("10 mb", "1 gb"),
            ("10 files", "5 files"),
            ("1 file", "5 files"),
            ("5 files", "10"),
            ("90 minutes", "2 hours"),
            ("500 dollars", "450 euros"),
            ("1 may", "3 june"),
            ("12 oak street", "12 elm street"),
            ("rome", "oslo"),
        ] {
            assert!(differ(a, b), "{a}, {b}");
        }
    }
}
