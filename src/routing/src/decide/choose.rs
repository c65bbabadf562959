//! What a model has to be for a judged request: the requirement of the policy, changed by the task that goes on and by
//! what the user chose (routing.md 6, 12, 13).

use decision::vocabulary::{Effort, Tier, Validation};

use super::judge::{Judged, SENSITIVE};
use super::{DIRECT, Prepared};
use crate::follow_up::Effect;
use crate::reason::{Reason, Warning, WarningCode};
use crate::registry::ModelRef;
use crate::request::RequestKind;
use crate::requirement::{Requirement, ValidationRequirement, require};

/// What selection aims at.
#[derive(Debug)]
pub(super) struct Wish {
    pub(super) requirement: Requirement,
    /// The floor below which nothing may go; lower than the requirement's where the user chose so.
    pub(super) min_tier: Tier,
    /// The model that stays unless it is gone: that of the task that goes on.
    pub(super) stay: Option<ModelRef>,
    /// The model the user chose.
    pub(super) model: Option<ModelRef>,
    /// The tier the user chose.
    pub(super) tier: Option<Tier>,
    pub(super) warnings: Vec<Warning>,
}

impl Wish {
    /// Whether the user chose anything.
    pub(super) fn is_explicit(&self, prepared: &Prepared<'_>) -> bool {
        self.model.is_some() || self.tier.is_some() || prepared.request.constraints.effort.is_some()
    }

    /// Whether a floor makes the task sensitive.
    pub(super) fn is_sensitive(&self) -> bool {
        self.requirement.min_tier >= SENSITIVE
    }
}

pub(super) fn wish(prepared: &Prepared<'_>, judged: &Judged) -> Wish {
    let mut requirement = match prepared.request.kind {
        RequestKind::Direct => direct(),
        RequestKind::User => require(&judged.assessment, &judged.fired, prepared.knobs.thresholds),
    };
    if judged.was_truncated() {
        requirement.notes.push(Reason::InputTruncated);
    }
    let stay = carry_over(prepared, &mut requirement);
    let mut wish = Wish {
        min_tier: requirement.min_tier,
        requirement,
        stay,
        model: None,
        tier: None,
        warnings: prepared.knobs.warnings.clone(),
    };
    apply_constraints(prepared, &mut wish);
    warn_of_what_stays(prepared, &mut wish);
    wish
}

fn direct() -> Requirement {
    let (required_tier, min_tier, effort, level) = DIRECT;
    Requirement {
        recommended_tier: required_tier,
        required_tier,
        min_tier,
        effort,
        validation: ValidationRequirement {
            required: level != Validation::None,
            level,
        },
        rules: Vec::new(),
        notes: Vec::new(),
        raises: Vec::new(),
        sensitive: false,
    }
}

/// What the task before hands on; the model that stays, if any.
fn carry_over(prepared: &Prepared<'_>, requirement: &mut Requirement) -> Option<ModelRef> {
    let previous = prepared.previous?;
    let current = || {
        let told = prepared
            .request
            .context
            .current
            .as_ref()
            .map(|current| current.model.clone());
        Some(told.unwrap_or_else(|| previous.selected.model.clone()))
    };
    match prepared.effect {
        Effect::Fresh => None,
        Effect::Answer { effort } => {
            requirement.effort = effort;
            current()
        }
        Effect::GoOn { tier, effort } => {
            requirement.min_tier = requirement.min_tier.max(previous.policy.min_tier);
            requirement.required_tier = tier.max(requirement.min_tier);
            requirement.effort = effort;
            requirement.validation = previous.policy.validation;
            Some(previous.selected.model.clone())
        }
        Effect::Repair {
            min_tier,
            effort,
            failures: _,
        } => {
            let new_floor = requirement.min_tier;
            requirement.min_tier = new_floor.max(min_tier);
            requirement.required_tier = requirement.required_tier.max(requirement.min_tier);
            requirement.effort = requirement.effort.max(effort);
            requirement.validation.level = requirement
                .validation
                .level
                .max(previous.policy.validation.level);
            requirement.validation.required |= previous.policy.validation.required;
            (new_floor <= previous.selected.tier).then(|| previous.selected.model.clone())
        }
        Effect::Extend { tier, effort } => {
            requirement.required_tier = requirement.required_tier.max(tier);
            requirement.effort = requirement.effort.max(effort);
            None
        }
    }
}

/// An explicit choice wins over everything, and is told where it lies below a floor.
fn apply_constraints(prepared: &Prepared<'_>, wish: &mut Wish) {
    let constraints = &prepared.request.constraints;
    let floor = wish.requirement.min_tier;
    if let Some(model) = &constraints.model {
        let known = prepared.knobs.registry.entry(model);
        if known.is_none() {
            wish.warn(
                WarningCode::CapabilityUnknown,
                format!("{model} is not in the registry: what it can do is unknown, it counts as balanced"),
            );
        }
        let tier = known.map_or(Tier::Balanced, |entry| entry.tier);
        if tier < floor {
            wish.warn(
                WarningCode::BelowFloor,
                format!("you chose {model} ({tier}); this work asks for {floor}"),
            );
        }
        wish.model = Some(model.clone());
        wish.stay = None;
    }
    if let Some(tier) = constraints.tier {
        if tier < floor && wish.model.is_none() {
            wish.warn(
                WarningCode::BelowFloor,
                format!("you chose tier {tier}; this work asks for {floor}"),
            );
        }
        wish.requirement.required_tier = tier;
        wish.min_tier = wish.min_tier.min(tier);
        wish.tier = Some(tier);
        wish.stay = None;
    }
    if let Some(effort) = constraints.effort {
        if wish.is_sensitive() && effort < Effort::Medium {
            wish.warn(
                WarningCode::BelowFloor,
                format!(
                    "you chose effort {effort}; sensitive work asks for at least {}",
                    Effort::Medium
                ),
            );
        }
        wish.requirement.effort = effort;
    }
}

/// A model that stays with its task below a floor was the user's choice, and is told as often as it runs.
fn warn_of_what_stays(prepared: &Prepared<'_>, wish: &mut Wish) {
    let (Some(model), Some(previous)) = (wish.stay.clone(), prepared.previous) else {
        return;
    };
    let (tier, floor) = (previous.selected.tier, wish.requirement.min_tier);
    let goes_on = matches!(prepared.effect, Effect::GoOn { .. } | Effect::Repair { .. });
    if goes_on && previous.selected.model == model && tier < floor {
        wish.warn(
            WarningCode::BelowFloor,
            format!("{model} ({tier}) goes on as you chose; this work asks for {floor}"),
        );
    }
}

impl Wish {
    fn warn(&mut self, code: WarningCode, message: String) {
        self.warnings.push(Warning { code, message });
    }
}
