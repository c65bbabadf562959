//! Merging, compiling, digests, and what a scan says.

use super::*;

fn edit(id: &str, any: &[&str], unless: &[&str], remove: &[&str]) -> GroupEdit {
    let owned = |terms: &[&str]| terms.iter().map(|term| (*term).to_owned()).collect();
    GroupEdit {
        id: id.into(),
        any: owned(any),
        unless: owned(unless),
        remove: owned(remove),
    }
}

fn empty() -> Keywords {
    Keywords::new(vec![Lists::default(); Group::ALL.len()], Vec::new())
}

fn with(edits: &[GroupEdit]) -> Keywords {
    empty().with_edits(edits).expect("good edits")
}

#[test]
fn edits_add_and_remove_terms() {
    let builtin = Keywords::builtin();
    assert!(
        builtin
            .scan("the checkout page")
            .matches(Group::TopicPayment)
    );
    let edited = builtin
        .with_edits(&[edit(
            "topic.payment",
            &["dunning"],
            &["dunning kruger"],
            &["checkout", "checkout page*"],
        )])
        .expect("good edits");
    assert!(
        !edited
            .scan("the checkout page")
            .matches(Group::TopicPayment)
    );
    assert!(edited.scan("the dunning run").matches(Group::TopicPayment));
    assert!(
        !edited
            .scan("the Dunning-Kruger effect")
            .matches(Group::TopicPayment)
    );
    assert_ne!(edited.digest(), builtin.digest());
}

#[test]
fn edits_say_everything_that_is_wrong() {
    let problems = Keywords::builtin()
        .with_edits(&[
            edit("topic.payment", &["ok", "a*b"], &["..."], &["no such term"]),
            edit("topic.money", &[], &[], &[]),
        ])
        .expect_err("four problems");
    let paths: Vec<&str> = problems
        .iter()
        .map(|problem| problem.path.as_str())
        .collect();
    assert_eq!(
        paths,
        ["[0].remove[0]", "[0].any[1]", "[0].unless[0]", "[1].id"]
    );
    assert!(
        problems[0]
            .to_string()
            .contains("topic.payment has no term `no such term`"),
        "{}",
        problems[0]
    );
}

#[test]
fn a_term_counts_once_however_it_is_written() {
    let once = with(&[edit("type.test", &["Prüfung*", "credit card"], &[], &[])]);
    let again = once
        .with_edits(&[edit("type.test", &["prufung*", "credit  card"], &[], &[])])
        .expect("good edits");
    assert_eq!(once.digest(), again.digest());
    let removed = once
        .with_edits(&[edit("type.test", &[], &[], &["PRUFUNG*"])])
        .expect("good edits");
    assert!(!removed.scan("Prüfungen").matches(Group::TypeTest));
}

#[test]
fn the_digest_is_of_the_canonical_form() {
    // sha256 of `[["type.security",[],[]],…]` with all groups empty but one.
    let one = with(&[edit("type.test", &["a b"], &["c\"d"], &[])]);
    let mut canonical = String::from("[");
    for group in Group::ALL {
        let lists = if *group == Group::TypeTest {
            r#"["a b"],["c\"d"]"#
        } else {
            "[],[]"
        };
        canonical.push_str(&format!(
            "{}[\"{group}\",{lists}]",
            if group.index() == 0 { "" } else { "," }
        ));
    }
    canonical.push(']');
    assert_eq!(one.digest(), Digest::of(canonical.as_bytes()).to_string());
}

#[test]
fn rules_are_checked() {
    let rule = |id: &str, patterns: &[&str]| AddedRule {
        id: id.into(),
        patterns: patterns.iter().map(|term| (*term).to_owned()).collect(),
        unless: vec![],
    };
    let problems = Keywords::builtin()
        .with_rules(&[rule("a", &["x"]), rule("a", &[]), rule(" ", &["*"])])
        .expect_err("four problems");
    let paths: Vec<&str> = problems
        .iter()
        .map(|problem| problem.path.as_str())
        .collect();
    assert_eq!(
        paths,
        ["[1].id", "[1].patterns", "[2].id", "[2].patterns[0]"]
    );
    let digest = Keywords::builtin()
        .with_rules(&[rule("a", &["x"])])
        .expect("a good rule")
        .digest()
        .to_owned();
    assert_eq!(
        digest,
        Keywords::builtin().digest(),
        "rules belong to the policy's digest"
    );
}

#[test]
fn unless_takes_matches_away_that_start_inside_it() {
    let keywords = with(&[edit(
        "topic.payment",
        &["checkout", "branch fee"],
        &["checkout ..4 branch"],
        &[],
    )]);
    let matched = |text: &str| keywords.scan(text).matches(Group::TopicPayment);
    assert!(!matched("checkout the release branch"));
    assert!(
        !matched("checkout the release branch fee"),
        "the first word of `branch fee` lies inside"
    );
    assert!(matched(
        "checkout the release branch, then style the checkout"
    ));
    assert!(matched("checkout 1 2 3 4 5 branch"), "the gap is too wide");
    assert!(
        !matched("checkoutReleaseBranch"),
        "in the camel stream as well"
    );
    assert!(matched("branch checkout"));
}

#[test]
fn either_stream_will_do() {
    let keywords = with(&[edit("topic.auth", &["password"], &[], &[])]);
    assert!(
        keywords
            .scan("call resetPassword")
            .matches(Group::TopicAuth)
    );
    assert!(keywords.scan("PASSWORD").matches(Group::TopicAuth));
    assert!(!keywords.scan("passwordless").matches(Group::TopicAuth));
}

#[test]
fn terms_of_several_scripts_keep_the_order_of_the_text() {
    let keywords = with(&[edit(
        "topic.payment",
        &["支付", "pay"],
        &["pay ..3 页面"],
        &[],
    )]);
    let scan = keywords.scan("支付 then pay the 页面 then pay");
    let firsts: Vec<usize> = scan
        .all(Group::TopicPayment)
        .iter()
        .map(|found| found.first)
        .collect();
    assert_eq!(
        firsts,
        [0, 8],
        "the middle one lies inside an `unless` match in another script"
    );
}

#[test]
fn the_whole_text_may_be_of_one_group() {
    let keywords = with(&[edit("mark.chat", &["thanks", "good job"], &[], &[])]);
    let whole = |text: &str, stop_words| {
        keywords
            .scan(text)
            .whole_text_is(Group::MarkChat, stop_words)
    };
    assert!(whole("Thanks!! good job", false));
    assert!(!whole("thanks for it", false));
    assert!(whole("thanks for it", true));
    assert!(!whole("for it", true), "stop words alone are nothing");
    assert!(!whole("", true));
    assert!(!whole("thanks, now fix it", true));
}

#[test]
fn forms_of_a_text() {
    let builtin = Keywords::builtin();
    let rows: &[(&str, bool, bool, bool)] = &[
        // text, question form, polite, explanatory
        ("How does login work?", true, false, true),
        ("How does login work", true, false, true),
        ("how do I add a column", true, false, false),
        ("How about a dark mode? We need it.", false, true, false),
        ("Can you fix the footer?", true, true, false),
        ("Hi, can you please fix the footer?", true, true, false),
        ("Você pode corrigir o rodapé?", true, true, false),
        ("能不能把按钮改成红色？", true, true, false),
        ("このボタンを直してもらえますか？", true, true, false),
        ("このトークンは何ですか", true, false, true),
        ("Explain the token refresh", false, false, true),
        ("Why does login fail?", true, false, false),
        ("Fix the footer", false, false, false),
        ("is this right?)\"", true, false, true),
        ("", false, false, false),
    ];
    for (text, question, polite, explanatory) in rows {
        let scan = builtin.scan(text);
        let got = (scan.question_form(), scan.polite(), scan.explanatory());
        assert_eq!(got, (*question, *polite, *explanatory), "{text}");
    }
}

#[test]
fn orders_may_come_after_courtesy_and_never_in_quotes() {
    let builtin = Keywords::builtin();
    for text in [
        "Run the tests",
        "please run the tests",
        "hey, could you run the tests?",
        "ok now run it",
    ] {
        assert!(builtin.scan(text).starts_with(Group::FormRun), "{text}");
    }
    assert!(!builtin.scan("the run failed").starts_with(Group::FormRun));
    assert!(
        !builtin
            .scan("change \"Add user\" to \"New user\"")
            .matches(Group::TypeFeature)
    );
    assert!(
        builtin
            .scan("the button \"sql injection\"")
            .matches(Group::TopicVulnerability),
        "floors look into quotes"
    );
}

#[test]
fn explains_what_matched() {
    let scan = Keywords::builtin().scan("Fix the resetPassword call and the password form");
    let terms = scan.matched_terms(Group::TopicAuth, 5);
    assert!(
        terms
            .iter()
            .any(|found| found.words == "password" && found.term == "password*"),
        "{terms:?}"
    );
    let mut names: Vec<&str> = terms.iter().map(|found| found.term.as_str()).collect();
    names.dedup();
    assert_eq!(names.len(), terms.len(), "each term once");
    assert_eq!(scan.matched_terms(Group::TopicAuth, 1).len(), 1);
}
