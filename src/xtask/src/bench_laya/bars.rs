//! The bars of wire.md 22.1, laid beside what was measured.

use laya::checkpoint::Shape;

use super::side::Kind;
use super::table::{Amount, Bar, Line};
use super::{Measured, SideResult};

/// A shape's shares of the original's time: ours in f32 and in int8 of its f32.
const fn of_f32(shape: Shape) -> Option<(f64, f64)> {
    match shape {
        Shape::ModernBertLarge => Some((0.45, 0.20)),
        Shape::MmBertBase => Some((0.50, 0.25)),
        Shape::Tiny => None,
    }
}

/// Share of the original's time in bf16, int8.
const OF_BF16: f64 = 0.60;
/// Longest R3 in the mmBERT-base shape, int8, milliseconds: a person waits for it.
const R3_MS: f64 = 600.0;
/// Shares of the original's memory in f32: ours in f32, in int8.
const MEMORY: (f64, f64) = (0.90, 0.45);

/// Every line about a shape.
pub(super) fn lines(measured: &Measured) -> Vec<Line> {
    let Measured { shape, sides } = measured;
    let of = |kind: Kind| sides.get(&kind);
    let mut lines = Vec::new();
    let mut add = |what: &str,
                   (ours, original): (Kind, Kind),
                   bar: Bar,
                   amount: &dyn Fn(&SideResult) -> Option<Amount>| {
        let Some(mine) = of(ours).and_then(amount) else {
            return;
        };
        let theirs = of(original).and_then(amount);
        lines.push(Line {
            what: format!(
                "{} {what}, {} : {}",
                shape.as_str(),
                ours.name(),
                original.name()
            ),
            ours: mine,
            original: theirs,
            bar,
        });
    };
    let ratio = |pick: fn((f64, f64)) -> f64| {
        of_f32(*shape).map_or(Bar::None, |bars| Bar::Ratio(pick(bars)))
    };
    let f32s = (Kind::OursF32, Kind::OriginalF32);
    let int8 = (Kind::OursInt8, Kind::OriginalF32);
    for case in ["R0", "R1", "R2", "R3"] {
        let time = |side: &SideResult| side.p50_ms.get(case).map(|ms| Amount::Millis(*ms));
        add(case, f32s, ratio(|(f32, _)| f32), &time);
        add(case, int8, ratio(|(_, int8)| int8), &time);
        let bf16 = of_f32(*shape).map_or(Bar::None, |_| Bar::Ratio(OF_BF16));
        add(case, (Kind::OursInt8, Kind::OriginalBf16), bf16, &time);
    }
    let real = |most: f64| match shape {
        Shape::Tiny => Bar::None,
        _ => Bar::Ratio(most),
    };
    let load = |side: &SideResult| Some(Amount::Millis(side.load_ms));
    let start = |side: &SideResult| Some(Amount::Millis(side.start_ms));
    let peak = |side: &SideResult| Some(Amount::Kib(side.peak_kib));
    add("load", f32s, real(1.0), &load);
    add("load", int8, real(1.0), &load);
    add("process start to loaded", f32s, real(1.0), &start);
    add("process start to loaded", int8, real(1.0), &start);
    add("peak memory", f32s, real(MEMORY.0), &peak);
    add("peak memory", int8, real(MEMORY.1), &peak);
    if *shape == Shape::MmBertBase
        && let Some(ms) = of(Kind::OursInt8).and_then(|side| side.p50_ms.get("R3"))
    {
        lines.push(Line {
            what: format!("{} R3, ours int8", shape.as_str()),
            ours: Amount::Millis(*ms),
            original: None,
            bar: Bar::AtMost(Amount::Millis(R3_MS)),
        });
    }
    lines
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    fn measured(shape: Shape, kinds: &[Kind]) -> Measured {
        let side = |at: usize| SideResult {
            load_ms: at as f64 + 1.0,
            start_ms: at as f64 + 2.0,
            peak_kib: at as u64 + 3,
            p50_ms: BTreeMap::from([("R3".to_owned(), 100.0 * (at as f64 + 1.0))]),
        };
        Measured {
            shape,
            sides: kinds
                .iter()
                .enumerate()
                .map(|(at, kind)| (*kind, side(at)))
                .collect(),
        }
    }

    #[test]
    fn each_measured_case_has_the_bars_of_its_shape() {
        let bars = |shape, kinds: &[Kind]| -> Vec<(Bar, bool)> {
            lines(&measured(shape, kinds))
                .iter()
                .map(|line| (line.bar, line.original.is_some()))
                .collect()
        };
        let beside = bars(Shape::MmBertBase, Kind::all(true));
        let ratios = [0.50, 0.25, 0.60, 1.0, 1.0, 1.0, 1.0, 0.90, 0.45];
        let mut wanted: Vec<_> = ratios.map(|most| (Bar::Ratio(most), true)).into();
        wanted.push((Bar::AtMost(Amount::Millis(600.0)), false));
        assert_eq!(beside, wanted, "beside the original");

        let alone = bars(Shape::ModernBertLarge, Kind::all(false));
        assert_eq!(alone.len(), 9, "alone");
        assert!(alone.iter().all(|(_, compared)| !compared), "alone");
        assert_eq!(alone[0].0, Bar::Ratio(0.45), "large, f32");

        let tiny = bars(Shape::Tiny, Kind::all(true));
        assert!(tiny.iter().all(|(bar, _)| *bar == Bar::None), "tiny");
    }
}
