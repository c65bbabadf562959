//! `relay report` (routing.md 21): what a router decided, how that went, what it cost and what it saved.

use api::exchange::{ReportGroup, ReportResponse};
use clap::Args;
use jiff::Timestamp;
use jiff::tz::TimeZone;
use routing::hidden_message::percent;

use crate::client::{OLDER, Question, encode};
use crate::contact::Contact;
use crate::error::{CliError, Exit};
use crate::output::{OutputArguments, count, dollars, field, time};
use crate::terminal::{Styles, escape};

/// Arguments of `relay report`.
#[derive(Debug, Args)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct ReportArguments {
    /// From when on: minutes, hours, days or weeks back (`30m`, `12h`, `7d`, `2w`), a day or a time (RFC 3339)
    #[arg(long, default_value = "7d", value_parser = parse_since)]
    since: String,

    #[command(flatten)]
    output: OutputArguments,
}

const AFTER_HELP: &str = "\
Examples:
  relay report
  relay report --since 30d
  relay report --since 2026-11-01 -o json

Exit codes: 0 shown (also when there is nothing to show), 1 other error, 2 bad arguments, 4 no router answers";

/// A time as the route takes it.
fn parse_since(text: &str) -> Result<String, String> {
    let wrong = || {
        format!(
            "`{text}` is neither a span such as 30m, 12h, 7d or 2w nor a time such as 2026-11-01"
        )
    };
    if let Some(number) = text.strip_suffix(['m', 'h', 'd', 'w']) {
        let positive = number.parse::<u32>().is_ok_and(|number| number > 0);
        let digits = number.bytes().all(|byte| byte.is_ascii_digit());
        return (positive && digits)
            .then(|| text.to_owned())
            .ok_or_else(wrong);
    }
    let day = || {
        let day: jiff::civil::Date = text.parse().ok()?;
        Some(day.to_zoned(TimeZone::UTC).ok()?.timestamp())
    };
    let at = text.parse::<Timestamp>().ok().or_else(day);
    at.map(routing::timestamp::format).ok_or_else(wrong)
}

/// Runs the command.
pub(crate) fn run(arguments: &ReportArguments) -> Result<Exit, CliError> {
    let contact = Contact::open()?;
    let path = format!("/v1/report?since={}", encode(&arguments.since));
    let report: ReportResponse = contact.client.find(Question::get(&path), "report", OLDER)?;
    arguments
        .output
        .print(&report, |styles| render(&report, styles))?;
    contact.finish();
    Ok(Exit::Done)
}

fn render(report: &ReportResponse, styles: Styles) -> String {
    let span = format!("{} to {}", time(report.since), time(report.until));
    if report.total.decisions == 0 {
        return format!(
            "No decisions from {span}.\nThe router counts what it decides: relay route \"Fix the login token expiry\"\n"
        );
    }
    let mut text = styles.bold(&format!("Decisions from {span}")) + "\n";
    let head = format!("  {:<16}decisions    judged    went well", "");
    text.push_str(&(styles.dim(&head) + "\n"));
    text.push_str(&group("all", &report.total));
    text.push_str(&(styles.dim("  by tier") + "\n"));
    for (tier, of_tier) in &report.by_tier {
        text.push_str(&group(&format!("  {tier}"), of_tier));
    }
    text.push_str(&(styles.dim("  by source") + "\n"));
    for (source, of_source) in &report.by_source {
        text.push_str(&group(&format!("  {}", escape(source)), of_source));
    }
    text.push('\n');
    let moves = format!(
        "{} to a stronger model or more thinking, {} to another provider, {} to learn about a model",
        count(report.escalations),
        count(report.provider_moves),
        count(report.explorations)
    );
    text.push_str(&field("moves", &moves, styles));
    text.push_str(&money(report, styles));
    if !report.assumptions.is_empty() {
        text.push_str(&format!("\n{}\n", styles.bold("What this rests on")));
        for assumption in &report.assumptions {
            text.push_str(&format!("  - {}\n", escape(assumption)));
        }
    }
    text
}

fn group(name: &str, group: &ReportGroup) -> String {
    let well = if group.judged == 0 {
        "-".to_owned()
    } else {
        let share = group.successes as f64 / group.judged as f64;
        format!("{} ({})", count(group.successes), percent(share))
    };
    format!(
        "  {name:<16}{:>9}{:>10}    {well}\n",
        count(group.decisions),
        count(group.judged)
    )
}

fn money(report: &ReportResponse, styles: Styles) -> String {
    let cost = &report.cost;
    let mut text = String::new();
    let known = report.total.decisions.saturating_sub(cost.unknown);
    if known > 0 {
        let difference = if cost.savings < 0.0 {
            format!("{} more", dollars(-cost.savings))
        } else if cost.baseline > 0.0 {
            let share = percent(cost.savings / cost.baseline);
            format!("{} saved ({share})", dollars(cost.savings))
        } else {
            format!("{} saved", dollars(cost.savings))
        };
        let line = format!(
            "{} estimated, {} on the baseline: {difference}",
            dollars(cost.estimated),
            dollars(cost.baseline)
        );
        text.push_str(&field("cost", &line, styles));
    }
    if cost.unknown > 0 {
        let line = format!(
            "{} of {} decisions have no known price and are not in these sums",
            count(cost.unknown),
            count(report.total.decisions)
        );
        text.push_str(&field(if known > 0 { "" } else { "cost" }, &line, styles));
    }
    let line = format!("{} reported by clients", dollars(cost.reported));
    text.push_str(&field("", &line, styles));
    text
}

#[cfg(test)]
mod tests {
    use api::exchange::ReportCost;
    use decision::vocabulary::Tier;

    use super::*;

    fn report() -> ReportResponse {
        let of = |decisions, judged, successes| ReportGroup {
            decisions,
            judged,
            successes,
        };
        ReportResponse {
            since: "2026-11-23T14:00:00Z".parse().unwrap(),
            until: "2026-11-30T14:00:00Z".parse().unwrap(),
            total: of(1234, 80, 72),
            by_tier: [(Tier::Fast, of(1200, 80, 72)), (Tier::Strong, of(34, 0, 0))].into(),
            by_source: [("model\u{7}".to_owned(), of(1234, 80, 72))].into(),
            escalations: 4,
            provider_moves: 1,
            explorations: 2,
            cost: ReportCost {
                estimated: 1.25,
                baseline: 5.0,
                savings: 3.75,
                unknown: 3,
                reported: 0.5,
            },
            assumptions: vec!["typical tokens\u{1b} by complexity".to_owned()],
        }
    }

    #[test]
    fn a_report_is_a_table_that_a_terminal_can_show() {
        let text = render(&report(), Styles::PLAIN);
        assert_eq!(
            text,
            "Decisions from 2026-11-23 14:00 UTC to 2026-11-30 14:00 UTC
                  decisions    judged    went well
  all                 1,234        80    72 (90%)
  by tier
    fast              1,200        80    72 (90%)
    strong               34         0    -
  by source
    model\\u{7}        1,234        80    72 (90%)

moves       4 to a stronger model or more thinking, 1 to another provider, 2 to learn about a model
cost        $1.25 estimated, $5.00 on the baseline: $3.75 saved (75%)
            3 of 1,234 decisions have no known price and are not in these sums
            $0.50 reported by clients

What this rests on
  - typical tokens\\u{1b} by complexity
"
        );
    }

    #[test]
    fn what_is_not_known_is_not_shown_as_nothing() {
        let mut unknown = report();
        unknown.cost = ReportCost {
            unknown: 1234,
            ..ReportCost::default()
        };
        let text = render(&unknown, Styles::PLAIN);
        assert!(
            !text.contains("saved") && text.contains("cost        1,234 of 1,234"),
            "{text}"
        );
        unknown.cost = ReportCost {
            estimated: 2.0,
            baseline: 1.0,
            savings: -1.0,
            ..ReportCost::default()
        };
        let text = render(&unknown, Styles::PLAIN);
        assert!(text.contains("on the baseline: $1.00 more"), "{text}");
        unknown.total = ReportGroup::default();
        let text = render(&unknown, Styles::PLAIN);
        assert!(
            text.starts_with("No decisions from 2026-11-23 14:00 UTC to "),
            "{text}"
        );
    }

    #[test]
    fn spans_and_times_are_read() {
        for (text, expected) in [
            ("7d", Some("7d")),
            ("12h", Some("12h")),
            ("30m", Some("30m")),
            ("2w", Some("2w")),
            ("2026-11-01", Some("2026-11-01T00:00:00.000Z")),
            (
                "2026-11-01T10:00:00+02:00",
                Some("2026-11-01T08:00:00.000Z"),
            ),
            ("0d", None),
            ("+7d", None),
            ("d", None),
            ("7", None),
            ("7y", None),
            ("99999999999d", None),
            ("yesterday", None),
            ("", None),
        ] {
            assert_eq!(parse_since(text).ok().as_deref(), expected, "{text}");
        }
    }
}
