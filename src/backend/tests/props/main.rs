//! Whatever a task prints is read without a panic, within bounds, and without a control character left.

use backend::task_protocol::{MAX_TAIL_BYTES, escape, read, tail};
use proptest::prelude::*;

fn line() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        any::<Vec<u8>>(),
        "PROGRESS \\{\"phase\":\"[a-z]{0,9}\",\"done\":-?[0-9]{1,3}(\\.[0-9]{1,3})?\\}"
            .prop_map(String::into_bytes),
        "RESULT \\{\"ok\":(true|false|1)\\}?".prop_map(String::into_bytes),
        "\\PC{0,200}".prop_map(String::into_bytes),
    ]
}

proptest! {
    #[test]
    fn any_output_is_read_within_bounds(lines in prop::collection::vec(line(), 0..60)) {
        let said = read(&lines.join(&b"\n"[..]));
        prop_assert!(said.tail.len() <= MAX_TAIL_BYTES);
        prop_assert!(!said.tail.chars().any(|c| c.is_control() && c != '\n' && c != '\t'));
        if let Some(progress) = said.progress {
            prop_assert!((0.0..=1.0).contains(&progress.done));
        }
        if let Some(result) = said.result {
            prop_assert!(result["ok"].is_boolean());
        }
    }

    #[test]
    fn a_tail_is_the_end_of_what_is_escaped(text in any::<String>(), limit in 0_usize..300) {
        let cut = tail(&text, limit);
        prop_assert!(cut.len() <= limit);
        prop_assert!(escape(text.trim_end()).ends_with(&cut));
    }

    #[test]
    fn a_result_is_found_wherever_the_streams_put_it(before in "[a-z \n]{0,80}", after in "[a-z \n]{0,80}") {
        let output = format!("{before}\nRESULT {{\"ok\":true}}\n{after}");
        prop_assert!(read(output.as_bytes()).result.is_some());
    }
}
