//! Lengths of time as people type them (`90s`, `5m`, `1h30m`) and read them (`3d4h`).

use std::time::Duration;

/// Longest time that may be asked for: a year.
const MAX_SECONDS: u64 = 365 * 24 * 3600;

/// Reads `500ms`, `30s`, `5m`, `2h`, `1d`, several of them, or plain seconds.
///
/// # Errors
/// What would be right.
pub(crate) fn parse(text: &str) -> Result<Duration, String> {
    let wrong = || format!("`{text}` is no length of time such as 30s, 5m or 1h30m");
    let mut rest = text.trim();
    if rest.is_empty() {
        return Err(wrong());
    }
    let mut total = Duration::ZERO;
    while !rest.is_empty() {
        let digits = rest
            .find(|c: char| !c.is_ascii_digit())
            .unwrap_or(rest.len());
        let number: u64 = rest[..digits].parse().map_err(|_| wrong())?;
        rest = &rest[digits..];
        let unit_end = rest
            .find(|c: char| c.is_ascii_digit())
            .unwrap_or(rest.len());
        let millis = match &rest[..unit_end] {
            "ms" => 1,
            "" | "s" => 1_000,
            "m" => 60_000,
            "h" => 3_600_000,
            "d" => 86_400_000,
            _ => return Err(wrong()),
        };
        rest = &rest[unit_end..];
        let part = number.checked_mul(millis).ok_or_else(wrong)?;
        total = total
            .checked_add(Duration::from_millis(part))
            .filter(|total| total.as_secs() <= MAX_SECONDS)
            .ok_or_else(|| format!("`{text}` is longer than a year"))?;
    }
    Ok(total)
}

/// In the form of `kubectl`: two units where the first is small, one where it is large.
pub(crate) fn human(seconds: i64) -> String {
    let seconds = seconds.max(0);
    let (minutes, hours, days) = (seconds / 60, seconds / 3600, seconds / 86400);
    let pair = |large: i64, unit: char, small: i64, small_unit: char| {
        if small == 0 {
            format!("{large}{unit}")
        } else {
            format!("{large}{unit}{small}{small_unit}")
        }
    };
    if seconds < 120 {
        format!("{seconds}s")
    } else if minutes < 10 {
        pair(minutes, 'm', seconds % 60, 's')
    } else if hours < 3 {
        format!("{minutes}m")
    } else if hours < 8 {
        pair(hours, 'h', minutes % 60, 'm')
    } else if hours < 48 {
        format!("{hours}h")
    } else if days < 8 {
        pair(days, 'd', hours % 24, 'h')
    } else if days < 730 {
        format!("{days}d")
    } else {
        pair(days / 365, 'y', days % 365, 'd')
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_what_people_type() {
        for (text, millis) in [
            ("0", 0),
            ("30", 30_000),
            ("500ms", 500),
            ("30s", 30_000),
            ("1h30m", 5_400_000),
            ("2d", 172_800_000),
        ] {
            assert_eq!(parse(text), Ok(Duration::from_millis(millis)), "{text}");
        }
        for text in [
            "",
            "s",
            "-1s",
            "1.5s",
            "5 m",
            "1w",
            "99999999999999999999",
            "400d",
            "1h-1m",
        ] {
            assert!(parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn shows_ages_as_kubectl_does() {
        for (seconds, expected) in [
            (-5, "0s"),
            (119, "119s"),
            (120, "2m"),
            (150, "2m30s"),
            (3_600, "60m"),
            (4 * 3_600 + 120, "4h2m"),
            (10 * 3_600, "10h"),
            (3 * 86_400 + 3_600, "3d1h"),
            (100 * 86_400, "100d"),
            (800 * 86_400, "2y70d"),
        ] {
            assert_eq!(human(seconds), expected, "{seconds}");
        }
    }
}
