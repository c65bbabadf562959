//! What happened since a moment, by tier, source and profile (routing.md 21).

use jiff::Timestamp;
use routing::assessment::Source;

use crate::error::SqlError;
use crate::records::ReportRow;
use crate::sql::{Connection, Read, Row, values};

/// The report of a tenant.
pub(crate) struct Since {
    pub(crate) tenant: String,
    pub(crate) since: Timestamp,
}

impl Read for Since {
    type Answer = Vec<ReportRow>;
    const WHAT: &'static str = "report";

    async fn read(&self, connection: &mut dyn Connection) -> Result<Vec<ReportRow>, SqlError> {
        // The verdict on a decision is that of its last final attempt: twice its number, and one more for a success.
        // Costs and savings are compared, so each sum is of the same decisions. SQLite takes the tables of a cross join in
        // this order, and so looks at no outcome from before.
        const GET: &str = "SELECT d.tier, d.source, d.profile, COUNT(*), \
            COUNT(o.verdict), COALESCE(SUM(o.verdict % 2), 0), \
            SUM(CASE WHEN d.kind = 'escalation' THEN 1 ELSE 0 END), \
            SUM(CASE WHEN d.kind = 'provider' THEN 1 ELSE 0 END), \
            CAST(SUM(d.explored) AS BIGINT), \
            SUM(CASE WHEN d.savings IS NOT NULL THEN d.cost END), COUNT(*) - COUNT(d.cost + d.savings), \
            SUM(CASE WHEN d.cost IS NOT NULL THEN d.savings END), COUNT(*) - COUNT(d.savings), \
            SUM(o.cost), COUNT(o.cost), \
            CAST(COALESCE(SUM(o.input_tokens), 0) AS BIGINT), \
            CAST(COALESCE(SUM(o.cached_input_tokens), 0) AS BIGINT), \
            CAST(COALESCE(SUM(o.cache_write_tokens), 0) AS BIGINT), \
            CAST(COALESCE(SUM(o.output_tokens), 0) AS BIGINT) \
            FROM relay_decisions d LEFT JOIN (SELECT r.decision, \
                CAST(MAX(CASE WHEN r.final = 1 AND r.counts > 0 \
                    THEN r.attempt * 2 + CASE WHEN r.counts = 1 THEN 1 ELSE 0 END END) AS INTEGER) AS verdict, \
                SUM(r.cost) AS cost, \
                CAST(SUM(r.input_tokens) AS BIGINT) AS input_tokens, \
                CAST(SUM(r.cached_input_tokens) AS BIGINT) AS cached_input_tokens, \
                CAST(SUM(r.cache_write_tokens) AS BIGINT) AS cache_write_tokens, \
                CAST(SUM(r.output_tokens) AS BIGINT) AS output_tokens \
                FROM relay_decisions m CROSS JOIN relay_outcomes r WHERE r.tenant = m.tenant AND r.decision = m.id \
                AND m.tenant = $1 AND m.created >= $2 AND m.kind <> 'direct' \
                GROUP BY r.decision) o ON o.decision = d.id \
            WHERE d.tenant = $1 AND d.created >= $2 AND d.kind <> 'direct' \
            GROUP BY d.tier, d.source, d.profile ORDER BY d.tier, d.source, d.profile";
        let values = values![&*self.tenant, self.since];
        let rows = connection.query(GET, values).await?;
        let mut report: Vec<_> = rows.into_iter().map(row).collect::<Result<_, _>>()?;
        // Words sort differently from what they mean, and in each database.
        report.sort_by(|one, other| {
            let key = |row: &ReportRow| (row.tier, row.source, row.profile.clone());
            key(one).cmp(&key(other))
        });
        Ok(report)
    }
}

fn row(mut row: Row) -> Result<ReportRow, SqlError> {
    let unknown = |what: &str| SqlError::Refused(format!("a stored {what} is not known"));
    let tier = row.text(0)?.parse().map_err(|_| unknown("tier"))?;
    let source = row.text(1)?;
    let source = Source::ALL.iter().find(|known| known.as_str() == source);
    Ok(ReportRow {
        tier,
        source: *source.ok_or_else(|| unknown("source"))?,
        profile: row.text(2)?,
        count: row.count(3)?,
        judged: row.count(4)?,
        successes: row.count(5)?,
        escalations: row.count(6)?,
        provider_moves: row.count(7)?,
        explored: row.count(8)?,
        estimated_cost: row.real(9)?,
        unknown_cost: row.count(10)?,
        estimated_savings: row.real(11)?,
        unknown_savings: row.count(12)?,
        reported_cost: row.real(13)?,
        reported_cost_count: row.count(14)?,
        input_tokens: row.count(15)?,
        cached_input_tokens: row.count(16)?,
        cache_write_tokens: row.count(17)?,
        output_tokens: row.count(18)?,
    })
}
