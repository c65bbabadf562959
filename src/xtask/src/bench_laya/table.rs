//! Numbers as people read them: the middle of a sample, and one markdown table with a bar and a verdict per line.

use std::fmt;

/// A measured amount.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Amount {
    /// Milliseconds.
    Millis(f64),
    /// Memory, KiB.
    Kib(u64),
    /// Things.
    Count(u64),
    /// A part of a whole.
    Share(f64),
}

impl Amount {
    const fn number(self) -> f64 {
        match self {
            Self::Millis(number) | Self::Share(number) => number,
            Self::Kib(number) | Self::Count(number) => number as f64,
        }
    }
}

impl fmt::Display for Amount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Millis(ms) if *ms < 10.0 => write!(f, "{ms:.3} ms"),
            Self::Millis(ms) if *ms < 1000.0 => write!(f, "{ms:.0} ms"),
            Self::Millis(ms) => write!(f, "{:.2} s", ms / 1e3),
            Self::Kib(kib) if *kib < 100 << 10 => write!(f, "{:.1} MB", *kib as f64 / 1024.0),
            Self::Kib(kib) => write!(f, "{} MB", kib >> 10),
            Self::Count(count) => write!(f, "{count}"),
            Self::Share(share) => write!(f, "{share:.2}"),
        }
    }
}

/// What an issue asks of a line.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Bar {
    /// Nothing; the number is there to be read.
    None,
    /// Ours divided by the original's is at most this.
    Ratio(f64),
    /// Ours is at most this.
    AtMost(Amount),
    /// Ours is at least this.
    AtLeast(Amount),
}

/// One line of the table.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Line {
    pub(super) what: String,
    pub(super) ours: Amount,
    pub(super) original: Option<Amount>,
    pub(super) bar: Bar,
}

impl Line {
    fn ratio(&self) -> Option<f64> {
        self.original
            .map(|original| self.ours.number() / original.number())
    }

    /// Whether the bar holds; none where there is no bar or nothing to compare with.
    fn holds(&self) -> Option<bool> {
        match self.bar {
            Bar::None => None,
            Bar::Ratio(most) => self.ratio().map(|ratio| ratio <= most),
            Bar::AtMost(most) => Some(self.ours.number() <= most.number()),
            Bar::AtLeast(least) => Some(self.ours.number() >= least.number()),
        }
    }
}

/// The table.
pub(super) fn markdown(lines: &[Line]) -> String {
    let mut text =
        "| what | ours | original | ratio | bar | |\n|---|---|---|---|---|---|\n".to_owned();
    for line in lines {
        let original = line.original.map_or("–".to_owned(), |o| o.to_string());
        let ratio = line.ratio().map_or("–".to_owned(), |r| format!("{r:.3}"));
        let bar = match line.bar {
            Bar::None => "–".to_owned(),
            Bar::Ratio(most) => format!("≤ {most:.2}"),
            Bar::AtMost(most) => format!("≤ {most}"),
            Bar::AtLeast(least) => format!("≥ {least}"),
        };
        let verdict = match line.holds() {
            None => "",
            Some(true) => "ok",
            Some(false) => "**missed**",
        };
        text += &format!(
            "| {} | {} | {original} | {ratio} | {bar} | {verdict} |\n",
            line.what, line.ours
        );
    }
    text
}

/// Processor and threads, for the head of the table.
pub(super) fn machine(threads: usize) -> String {
    let info = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let name = info
        .lines()
        .find_map(|line| line.strip_prefix("model name"))
        .map_or("unknown processor", |rest| {
            rest.trim_start_matches([' ', '\t', ':'])
        });
    let vnni = if info.contains("avx512_vnni") {
        "AVX-512 VNNI"
    } else if info.contains("avx_vnni") {
        "AVX VNNI"
    } else {
        "no VNNI"
    };
    format!("{name}, {threads} threads, {vnni}")
}

/// The middle of a sample by nearest rank; not a number of none.
pub(super) fn p50(values: impl IntoIterator<Item = f64>) -> f64 {
    percentile(values, 0.5)
}

/// The smallest value that at least `share` of a sample does not exceed; not a number of none.
pub(super) fn percentile(values: impl IntoIterator<Item = f64>, share: f64) -> f64 {
    let mut sorted: Vec<f64> = values.into_iter().collect();
    sorted.sort_by(f64::total_cmp);
    let rank = (share * sorted.len() as f64).ceil() as usize;
    sorted
        .get(rank.saturating_sub(1))
        .copied()
        .unwrap_or(f64::NAN)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_middle_is_a_value_of_the_sample() {
        for (sample, middle) in [
            (vec![3.0], 3.0),
            (vec![9.0, 1.0, 5.0], 5.0),
            (vec![4.0, 1.0, 3.0, 2.0], 2.0),
        ] {
            assert_eq!(p50(sample.clone()), middle, "{sample:?}");
        }
        assert!(p50([]).is_nan());
        assert_eq!(percentile((1..=100).map(f64::from), 0.99), 99.0);
    }

    #[test]
    fn a_line_says_whether_its_bar_holds() {
        let line = |ours, original, bar| Line {
            what: "x".to_owned(),
            ours: Amount::Millis(ours),
            original: Option::map(original, Amount::Millis),
            bar,
        };
        let most = |ms| Bar::AtMost(Amount::Millis(ms));
        for (line, row) in [
            (
                line(450.0, Some(1000.0), Bar::Ratio(0.45)),
                "| x | 450 ms | 1.00 s | 0.450 | ≤ 0.45 | ok |",
            ),
            (
                line(460.0, Some(1000.0), Bar::Ratio(0.45)),
                "| x | 460 ms | 1.00 s | 0.460 | ≤ 0.45 | **missed** |",
            ),
            (
                line(460.0, None, Bar::Ratio(0.45)),
                "| x | 460 ms | – | – | ≤ 0.45 |  |",
            ),
            (
                line(0.25, None, most(0.3)),
                "| x | 0.250 ms | – | – | ≤ 0.300 ms | ok |",
            ),
            (
                line(0.35, None, most(0.3)),
                "| x | 0.350 ms | – | – | ≤ 0.300 ms | **missed** |",
            ),
            (
                line(5.0, None, Bar::None),
                "| x | 5.000 ms | – | – | – |  |",
            ),
        ] {
            assert_eq!(
                markdown(std::slice::from_ref(&line)).lines().last(),
                Some(row),
                "{line:?}"
            );
        }
    }
}
