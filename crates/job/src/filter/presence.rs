//! `record.x != null` as a test for a field.
//!
//! CEL makes an error of a field that is missing from a map, and only `has()` can ask for it. Whoever compares a field
//! of the record with null means "is there anything", so in such a comparison, and only there, a missing field is null.

use cel::IdedExpr;
use cel::common::ast::{Expr, LiteralValue, operators};

use super::RECORD;

/// Begins the names that stand for "this field of the record, or null". No identifier can begin like it.
const OR_NULL: &str = "@or_null";

/// Separates the field names within such a name.
const SEPARATOR: char = '\u{1}';

/// Makes `record.a.b` in comparisons with null a variable of its own.
pub(super) fn rewrite(expr: &mut IdedExpr) {
    match &mut expr.expr {
        Expr::Call(call) => {
            let compares = call.func_name == operators::EQUALS || call.func_name == operators::NOT_EQUALS;
            if compares && call.args.iter().any(is_null) {
                for side in &mut call.args {
                    if let Some(fields) = fields_of_record(&side.expr).filter(|fields| !fields.is_empty()) {
                        let name = fields
                            .into_iter()
                            .fold(OR_NULL.to_owned(), |name, field| format!("{name}{SEPARATOR}{field}"));
                        side.expr = Expr::Ident(name);
                    }
                }
            }
            call.target.as_deref_mut().into_iter().chain(&mut call.args).for_each(rewrite);
        }
        Expr::Comprehension(comprehension) => {
            let parts = [
                &mut comprehension.iter_range,
                &mut comprehension.accu_init,
                &mut comprehension.loop_cond,
                &mut comprehension.loop_step,
                &mut comprehension.result,
            ];
            parts.into_iter().for_each(rewrite);
        }
        Expr::List(list) => list.elements.iter_mut().for_each(rewrite),
        Expr::Select(select) => rewrite(&mut select.operand),
        _ => {}
    }
}

/// The fields that a variable made by [`rewrite`] names.
pub(super) fn fields_or_null(variable: &str) -> Option<impl Iterator<Item = &str>> {
    variable.strip_prefix(OR_NULL).map(|fields| fields.split(SEPARATOR).skip(1))
}

fn is_null(expr: &IdedExpr) -> bool {
    matches!(expr.expr, Expr::Literal(LiteralValue::Null))
}

/// `[a, b]` for `record.a.b` and for `record["a"].b`; empty for `record`.
fn fields_of_record(expr: &Expr) -> Option<Vec<&str>> {
    match expr {
        Expr::Ident(name) if name == RECORD => Some(Vec::new()),
        Expr::Select(select) if !select.test => {
            let mut fields = fields_of_record(&select.operand.expr)?;
            fields.push(&select.field);
            Some(fields)
        }
        Expr::Call(call) if call.func_name == operators::INDEX => match call.args.as_slice() {
            [operand, index] => {
                let Expr::Literal(LiteralValue::String(field)) = &index.expr else { return None };
                let mut fields = fields_of_record(&operand.expr)?;
                fields.push(field.inner());
                Some(fields)
            }
            _ => None,
        },
        _ => None,
    }
}
