//! What goes wrong. Told by `RELAY_FAULT`, else by the file `relay-fault` in the model's folder, else by the folder's name
//! where it begins with `fault-`; words divided by commas (in a folder's name by `+`), some with `=` and a number.

use std::path::Path;

/// Every switch. Nothing set is a healthy server.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Switches {
    /// `slow-load=MS`: not ready for so long.
    pub(crate) slow_load_millis: Option<u64>,
    /// `never-ready`.
    pub(crate) never_ready: bool,
    /// `ready-probe-failed`: it loads, and says that its own probe failed; with `dead-head` that this was found.
    pub(crate) ready_probe_failed: bool,
    /// `ready-wrong-contract`: it loads, and says that its checkpoint is of another contract than it was to serve.
    pub(crate) ready_wrong_contract: bool,
    /// `no-ready`: as laya 0.4.15, which has no `/ready`, no `/drain` and names no contract.
    pub(crate) no_ready: bool,
    /// `wrong-answers`: the least likely option is chosen, of recorded probes too.
    pub(crate) wrong_answers: bool,
    /// `dead-head`: to a question always the same answer, whatever it is asked of.
    pub(crate) dead_head: bool,
    /// `nan`.
    pub(crate) nan: bool,
    /// `malformed`: half of the JSON.
    pub(crate) malformed: bool,
    /// `slow-answers=MS`.
    pub(crate) slow_answers_millis: Option<u64>,
    /// `cpu-claim`: whatever device was asked for.
    pub(crate) cpu_claim: bool,
    /// `wrong-contract`.
    pub(crate) wrong_contract: bool,
    /// `wrong-digest`.
    pub(crate) wrong_digest: bool,
    /// `crash-after=N`: ends after so many decisions.
    pub(crate) crash_after: Option<u64>,
    /// `crash-in=MS`: ends so long after its start.
    pub(crate) crash_in_millis: Option<u64>,
    /// `crash-code=N`: with this code; 1 without.
    pub(crate) crash_code: Option<u64>,
    /// `crash-at-start=N`: ends at once with this code.
    pub(crate) crash_at_start: Option<u64>,
    /// `damaged`: ends at once with 3, as with a checkpoint of another digest.
    pub(crate) damaged: bool,
    /// `eat-memory`: at start, without end.
    pub(crate) eat_memory: bool,
    /// `ignore-sigterm`.
    pub(crate) ignore_sigterm: bool,
}

impl Switches {
    /// Reads the words.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let mut switches = Self::default();
        for word in text
            .split([',', '+'])
            .map(str::trim)
            .filter(|word| !word.is_empty())
        {
            let (name, number) = match word.split_once('=') {
                None => (word, None),
                Some((name, number)) => {
                    let number: u64 = number
                        .parse()
                        .map_err(|_| format!("`{word}`: after = stands a number"))?;
                    (name, Some(number))
                }
            };
            switches.set(name, number)?;
        }
        Ok(switches)
    }

    fn set(&mut self, name: &str, number: Option<u64>) -> Result<(), String> {
        let with_number = match name {
            "slow-load" => Some(&mut self.slow_load_millis),
            "slow-answers" => Some(&mut self.slow_answers_millis),
            "crash-after" => Some(&mut self.crash_after),
            "crash-in" => Some(&mut self.crash_in_millis),
            "crash-code" => Some(&mut self.crash_code),
            "crash-at-start" => Some(&mut self.crash_at_start),
            _ => None,
        };
        if let Some(field) = with_number {
            *field = Some(number.ok_or_else(|| format!("`{name}` needs = and a number"))?);
            return Ok(());
        }
        let field = match name {
            "healthy" => return Ok(()),
            "never-ready" => &mut self.never_ready,
            "ready-probe-failed" => &mut self.ready_probe_failed,
            "ready-wrong-contract" => &mut self.ready_wrong_contract,
            "no-ready" => &mut self.no_ready,
            "wrong-answers" => &mut self.wrong_answers,
            "dead-head" => &mut self.dead_head,
            "nan" => &mut self.nan,
            "malformed" => &mut self.malformed,
            "cpu-claim" => &mut self.cpu_claim,
            "wrong-contract" => &mut self.wrong_contract,
            "wrong-digest" => &mut self.wrong_digest,
            "damaged" => &mut self.damaged,
            "eat-memory" => &mut self.eat_memory,
            "ignore-sigterm" => &mut self.ignore_sigterm,
            _ => return Err(format!("`{name}` is no switch")),
        };
        *field = true;
        Ok(())
    }

    /// From where they are told.
    pub(crate) fn find(variable: Option<&str>, model: Option<&Path>) -> Result<Self, String> {
        if let Some(text) = variable {
            return Self::parse(text);
        }
        let Some(model) = model else {
            return Ok(Self::default());
        };
        if let Ok(text) = std::fs::read_to_string(model.join("relay-fault")) {
            return Self::parse(&text);
        }
        let name = model.file_name().and_then(|name| name.to_str());
        match name.and_then(|name| name.strip_prefix("fault-")) {
            Some(text) => Self::parse(text),
            None => Ok(Self::default()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_read_and_unknown_ones_refused() {
        let read = Switches::parse("slow-load=250, nan,crash-after=3").unwrap();
        assert_eq!(
            (read.slow_load_millis, read.nan, read.crash_after),
            (Some(250), true, Some(3))
        );
        let read = Switches::parse("ready-probe-failed,dead-head+ready-wrong-contract").unwrap();
        assert!(read.ready_probe_failed && read.dead_head && read.ready_wrong_contract);
        for bad in ["sloow", "slow-load", "crash-after=x"] {
            assert!(Switches::parse(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn the_variable_wins_over_the_folder() {
        let folder = Path::new("/data/models/fault-never-ready+crash-code=7");
        let by_name = Switches::find(None, Some(folder)).unwrap();
        assert!(by_name.never_ready && by_name.crash_code == Some(7));
        let by_variable = Switches::find(Some("nan"), Some(folder)).unwrap();
        assert!(by_variable.nan && !by_variable.never_ready);
        let plain = Switches::find(None, Some(Path::new("/data/models/sha256-00"))).unwrap();
        assert_eq!(plain, Switches::default());
    }
}
