//! Properties of check commands that hold for any command line (routing.md 19).

use proptest::prelude::*;
use routing::checks::{CheckResult, check_result};

/// Command lines made of what shells give a meaning to, and any text.
fn line() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        "npm test",
        "cargo test",
        "echo",
        "if",
        "then",
        "set -e",
        "set -o pipefail",
        "bash -c",
        "&&",
        "\\|\\|",
        ";",
        "\n",
        "&",
        "\\|",
        "\\(",
        "\\)",
        "\\{",
        "\\}",
        "'",
        "\"",
        "`",
        "\\$\\(",
        "\\\\",
        "<<EOF",
        "EOF",
        "2>&1",
        ">",
        "#",
        "!",
        "\\PC{0,4}",
    ];
    proptest::collection::vec(piece, 0..24).prop_map(|pieces| pieces.join(" "))
}

proptest! {
    #[test]
    fn reads_any_line(line in prop_oneof![3 => line(), 1 => any::<String>()]) {
        let failed = check_result(&line, Some(1));
        prop_assert!(failed != CheckResult::Passed, "a failing line never passes");
    }

    #[test]
    fn an_or_hides_every_status(line in line()) {
        let line = format!("cargo test || {line}");
        prop_assert_ne!(check_result(&line, Some(0)), CheckResult::NotACheck);
    }

    #[test]
    fn the_status_says_nothing_about_whether_it_is_a_check(line in line()) {
        let is_check = |exit| check_result(&line, exit) != CheckResult::NotACheck;
        prop_assert_eq!(is_check(Some(0)), is_check(Some(1)));
        prop_assert_eq!(is_check(Some(0)), is_check(None));
    }

    #[test]
    fn a_last_line_of_its_own_is_believed(before in "[A-Z ;&]{0,20}") {
        // Upper case, since a word such as `if` would open a compound command that the last line ends.
        let line = format!("{before}\ncargo test");
        let decided = check_result(&line, Some(1));
        prop_assert!(matches!(decided, CheckResult::Failed), "{line:?}: {decided:?}");
    }
}
