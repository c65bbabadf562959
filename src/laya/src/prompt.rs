//! The row that the model reads: question, options behind their markers, state, cut to their budgets (wire.md 10). Works
//! on token ids; texts have become tokens before.

use crate::tokenizer::Specials;

/// Tokens that an option keeps at most, its marker not counted.
const OPTION_TOKENS: usize = 48;
/// Tokens that the instructions keep room for before options are cut.
const INSTRUCTIONS_ROOM: usize = 16;
/// Tokens that the instructions keep in any case.
const INSTRUCTIONS_LEAST: usize = 8;
/// Tokens that a cut option keeps in any case, its marker counted.
const OPTION_LEAST: usize = 4;

/// How long rows may be, in tokens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Budget {
    /// The whole row.
    pub max_len: usize,
    /// Question and options.
    pub head_max_len: usize,
}

/// Which end of a state survives a cut.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Keep {
    /// The beginning: strings, objects, numbers, booleans.
    First,
    /// The end: lists, whose last items are the newest.
    Last,
}

/// Tokens of a question: its prompt and the text of each slot.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QuestionTokens {
    /// Tokens of `<type> question: <instructions>`.
    pub prompt: Vec<u32>,
    /// Tokens of `" " + option` for each slot.
    pub options: Vec<Vec<u32>>,
}

/// A row and what became of its parts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Row {
    /// Token ids.
    pub ids: Vec<u32>,
    /// Position of each slot's marker; fewer than slots if the row was too short for all.
    pub markers: Vec<usize>,
    /// Different token spans among the cut options.
    pub distinct_options: usize,
    /// Tokens an option was cut to, marker included; none where the usual limit was enough.
    pub tokens_per_option: Option<usize>,
    /// Tokens of the state in the row.
    pub state_tokens_used: usize,
}

/// Builds a row of a question about a state.
#[must_use]
pub fn build(
    specials: Specials,
    question: &QuestionTokens,
    state: &[u32],
    keep: Keep,
    budget: Budget,
) -> Row {
    let mut options: Vec<&[u32]> = question
        .options
        .iter()
        .map(|o| &o[..o.len().min(OPTION_TOKENS)])
        .collect();
    let left = |options: &[&[u32]]| {
        let used: usize = options.iter().map(|o| o.len() + 1).sum();
        budget.head_max_len as i64 - used as i64
    };
    let mut room = left(&options);
    let mut tokens_per_option = None;
    if room < INSTRUCTIONS_ROOM as i64 {
        let per = (budget.head_max_len.saturating_sub(INSTRUCTIONS_ROOM) / options.len().max(1))
            .max(OPTION_LEAST);
        options
            .iter_mut()
            .for_each(|o| *o = &o[..o.len().min(per - 1)]);
        tokens_per_option = Some(per);
        room = left(&options);
    }
    let distinct_options = options
        .iter()
        .collect::<std::collections::BTreeSet<_>>()
        .len();
    let instructions = question
        .prompt
        .len()
        .min(INSTRUCTIONS_LEAST.max(usize::try_from(room).unwrap_or(0)));

    let mut ids = Vec::with_capacity(budget.max_len.min(8 + budget.head_max_len + state.len()));
    let mut markers = Vec::with_capacity(options.len());
    ids.push(specials.cls);
    ids.extend(&question.prompt[..instructions]);
    ids.push(specials.sep);
    for option in options {
        markers.push(ids.len());
        ids.push(specials.mask);
        ids.extend(option);
    }
    ids.push(specials.sep);
    let used = state
        .len()
        .min(budget.max_len.saturating_sub(ids.len() + 1));
    ids.extend(match keep {
        Keep::First => &state[..used],
        Keep::Last => &state[state.len() - used..],
    });
    ids.push(specials.sep);
    ids.truncate(budget.max_len);
    markers.retain(|marker| *marker < ids.len());
    Row {
        ids,
        markers,
        distinct_options,
        tokens_per_option,
        state_tokens_used: used,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SPECIALS: Specials = Specials {
        cls: 1,
        sep: 2,
        pad: 0,
        mask: 3,
    };

    fn question(prompt: usize, options: &[usize]) -> QuestionTokens {
        let options = options
            .iter()
            .enumerate()
            .map(|(i, len)| (0..*len).map(|t| (100 * (i + 1) + t) as u32).collect())
            .collect();
        QuestionTokens {
            prompt: (0..prompt).map(|t| 50 + t as u32).collect(),
            options,
        }
    }

    #[test]
    fn a_row_has_its_parts_in_order() {
        let row = build(
            SPECIALS,
            &question(2, &[1, 2]),
            &[7, 8],
            Keep::First,
            Budget {
                max_len: 64,
                head_max_len: 32,
            },
        );
        assert_eq!(row.ids, [1, 50, 51, 2, 3, 100, 3, 200, 201, 2, 7, 8, 2]);
        assert_eq!(row.markers, [4, 6]);
        assert_eq!(
            (
                row.distinct_options,
                row.tokens_per_option,
                row.state_tokens_used
            ),
            (2, None, 2)
        );
    }

    #[test]
    fn budgets_cut_options_instructions_and_state() {
        // name, prompt, options, state, keep, max, head; tokens per option, row length, markers, state used
        let rows = [
            (
                "48 tokens of an option",
                4,
                vec![60, 1],
                3,
                200,
                100,
                None,
                4 + 1 + 1 + 49 + 2 + 1 + 3 + 1,
                2,
                3,
            ),
            (
                "the cap",
                20,
                vec![40, 40, 40],
                3,
                200,
                64,
                Some(16),
                1 + 16 + 1 + 48 + 1 + 3 + 1,
                3,
                3,
            ),
            (
                "the least of an option",
                20,
                vec![9, 9, 9, 9, 9],
                3,
                200,
                20,
                Some(4),
                1 + 8 + 1 + 20 + 1 + 3 + 1,
                5,
                3,
            ),
            (
                "room for sixteen",
                20,
                vec![5, 8],
                0,
                200,
                31,
                None,
                1 + 16 + 1 + 15 + 1 + 1,
                2,
                0,
            ),
            (
                "one less",
                20,
                vec![6, 8],
                0,
                200,
                31,
                Some(7),
                1 + 17 + 1 + 14 + 1 + 1,
                2,
                0,
            ),
            (
                "the state is cut",
                2,
                vec![1, 1],
                100,
                20,
                32,
                None,
                20,
                2,
                10,
            ),
            (
                "no room for the state",
                2,
                vec![1, 1],
                100,
                9,
                32,
                None,
                9,
                2,
                0,
            ),
            (
                "markers beyond the row",
                2,
                vec![1, 1],
                100,
                6,
                32,
                None,
                6,
                1,
                0,
            ),
        ];
        for (name, prompt, options, state, max_len, head_max_len, per, length, markers, used) in
            rows
        {
            let state: Vec<u32> = (0..state).collect();
            let row = build(
                SPECIALS,
                &question(prompt, &options),
                &state,
                Keep::First,
                Budget {
                    max_len,
                    head_max_len,
                },
            );
            let seen = (
                row.tokens_per_option,
                row.ids.len(),
                row.markers.len(),
                row.state_tokens_used,
            );
            assert_eq!(seen, (per, length, markers, used), "{name}");
        }
    }

    #[test]
    fn lists_keep_their_end() {
        let state: Vec<u32> = (1000..1100).collect();
        let budget = Budget {
            max_len: 20,
            head_max_len: 32,
        };
        let row = build(SPECIALS, &question(2, &[1, 1]), &state, Keep::Last, budget);
        assert_eq!(row.ids[9..19], state[90..]);
        assert_eq!(row.ids[19], SPECIALS.sep);
    }

    #[test]
    fn options_cut_to_the_same_tokens_are_counted_once() {
        let mut question = question(20, &[9, 9]);
        question.options[1] = question.options[0].clone();
        question.options[1][8] = 1;
        let row = build(
            SPECIALS,
            &question,
            &[],
            Keep::First,
            Budget {
                max_len: 99,
                head_max_len: 20,
            },
        );
        assert_eq!((row.distinct_options, row.tokens_per_option), (1, Some(4)));
    }
}
