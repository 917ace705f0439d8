//! Days and times of the proleptic Gregorian calendar from microseconds since the epoch,
//! in UTC or on the clock of a stamp that names its offset.

const MONTHS: [&str; 12] = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
];

/// The shortest that an offset stands behind: a day and an hour (`20240514T20`).
const SHORTEST: usize = 11;

/// Seconds that the clock of a stamp is ahead of UTC: the offset that it ends in, 0
/// where it names none. `given` is a stamp that was understood when it was taken in.
pub fn clock_offset(given: &str) -> i32 {
    let text = given.trim();
    // The "-" of a day is nearer to the start; that of a number stands behind an "e".
    let sign = text.rfind(['+', '-']).filter(|at| *at >= SHORTEST);
    let Some(at) = sign.filter(|_| !text.contains('e')) else {
        return 0;
    };
    let digit = |b: u8| b.is_ascii_digit().then(|| i32::from(b - b'0'));
    let behind = text[at + 1..].bytes().filter(|b| *b != b':');
    let mut digits = behind.map_while(digit);
    let mut two = || Some(digits.next()? * 10 + digits.next()?);
    let hours = two().unwrap_or(0);
    let (minutes, seconds) = (two().unwrap_or(0), two().unwrap_or(0));
    let ahead = hours * 3600 + minutes * 60 + seconds;
    match ahead < 86_400 {
        true if text[at..].starts_with('-') => -ahead,
        true => ahead,
        false => 0,
    }
}

/// A moment on a clock that is so many seconds ahead of UTC.
pub fn on_clock(utc_micros: i64, ahead: i32) -> i64 {
    utc_micros.saturating_add(i64::from(ahead) * 1_000_000)
}

/// Year, month, day and minute of the day of a time.
fn civil(micros: i64) -> (i64, i64, i64, i64) {
    let minutes = micros.div_euclid(60_000_000);
    let (days, minute) = (minutes.div_euclid(1440), minutes.rem_euclid(1440));
    // Days since 0000-03-01, in 400-year eras: leap days end a March-based year.
    let z = days + 719_468;
    let (era, doe) = (z.div_euclid(146_097), z.rem_euclid(146_097));
    let yoe = (doe - doe / 1460 + doe / 36_524 - doe / 146_096) / 365;
    let doy = doe - (365 * yoe + yoe / 4 - yoe / 100);
    let mp = (5 * doy + 2) / 153;
    let day = doy - (153 * mp + 2) / 5 + 1;
    let month = if mp < 10 { mp + 3 } else { mp - 9 };
    (yoe + era * 400 + i64::from(month <= 2), month, day, minute)
}

/// `2023-05-08`.
pub fn iso_day(micros: i64) -> String {
    let (year, month, day, _) = civil(micros);
    format!("{year:04}-{month:02}-{day:02}")
}

/// `8 May 2023, 1:56 pm`.
pub fn long_form(micros: i64) -> String {
    let (year, month, day, minute) = civil(micros);
    #[allow(clippy::cast_sign_loss, clippy::cast_possible_truncation)]
    let name = MONTHS[(month - 1) as usize];
    let (hour, minute) = (minute / 60, minute % 60);
    let half = if hour < 12 { "am" } else { "pm" };
    format!(
        "{day} {name} {year}, {}:{minute:02} {half}",
        (hour + 11) % 12 + 1
    )
}

/// `8 May 2023`.
pub fn day_form(micros: i64) -> String {
    let (year, month, day, _) = civil(micros);
    #[allow(clippy::cast_sign_loss, clippy::cast_possible_truncation)]
    let name = MONTHS[(month - 1) as usize];
    format!("{day} {name} {year}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stamp_has_the_clock_of_its_offset() {
        let offsets = [
            ("2024-05-14T20:00:00-07:00", -7 * 3600),
            ("2024-05-14 20:00+0530", 5 * 3600 + 1800),
            (" 20240514T20-07 ", -7 * 3600),
            ("2024-W20-2T20:00+02:00:01.5", 7201),
            ("2024-05-14T20:00:00+00:00", 0),
            ("2024-05-14T20:00:00Z", 0),
            ("2024-05-14T20:00:00", 0),
            ("2024-05-14", 0),
            ("2024-W20-2", 0),
            ("1:56 pm on 8 May, 2023", 0),
            ("1715742000.5", 0),
            ("-86400", 0),
            ("1.23456789012e-05", 0),
            ("2024-05-14T20:00:00+99:00", 0),
            ("", 0),
        ];
        for (given, seconds) in offsets {
            assert_eq!(clock_offset(given), seconds, "{given}");
        }
        let moment = on_clock(1_715_742_000_000_000, -7 * 3600);
        assert_eq!(long_form(moment), "14 May 2024, 8:00 pm");
    }

    #[test]
    fn known_days() {
        assert_eq!(iso_day(0), "1970-01-01");
        assert_eq!(iso_day(-1), "1969-12-31");
        assert_eq!(iso_day(951_782_400_000_000), "2000-02-29");
        assert_eq!(long_form(1_683_554_160_000_000), "8 May 2023, 1:56 pm");
        assert_eq!(day_form(1_683_554_160_000_000), "8 May 2023");
        assert_eq!(long_form(1_683_504_000_000_000), "8 May 2023, 12:00 am");
        assert_eq!(long_form(1_683_547_200_000_000), "8 May 2023, 12:00 pm");
    }
}
