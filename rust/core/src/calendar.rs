//! Days and times of the proleptic Gregorian calendar from UTC microseconds.

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

/// Year, month, day and minute of the day of a UTC time.
fn civil(utc_micros: i64) -> (i64, i64, i64, i64) {
    let minutes = utc_micros.div_euclid(60_000_000);
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
pub fn iso_day(utc_micros: i64) -> String {
    let (year, month, day, _) = civil(utc_micros);
    format!("{year:04}-{month:02}-{day:02}")
}

/// `8 May 2023, 1:56 pm`.
pub fn long_form(utc_micros: i64) -> String {
    let (year, month, day, minute) = civil(utc_micros);
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
pub fn day_form(utc_micros: i64) -> String {
    let (year, month, day, _) = civil(utc_micros);
    #[allow(clippy::cast_sign_loss, clippy::cast_possible_truncation)]
    let name = MONTHS[(month - 1) as usize];
    format!("{day} {name} {year}")
}

#[cfg(test)]
mod tests {
    use super::*;

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
