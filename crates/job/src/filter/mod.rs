//! Conditions over a record's fields, in CEL (the Common Expression Language).
//!
//! Fields of the outermost object are variables and `record` is the record as a whole, so that `has(record.x)` can ask
//! for a field. A condition is compiled once; for each record only the fields that it names are looked at, where they
//! stand in the line.

mod presence;
mod value;

#[cfg(test)]
mod tests;

use std::fmt;
use std::sync::{Arc, LazyLock};

use cel::common::value::CowVal;
use cel::context::VariableResolver;
use cel::{Context, Env, ExecutionError, IdedExpr, Value};

use crate::record::{JsonRecord, JsonText, member};
use crate::suggest::closest;
use value::{Fields, to_val};

/// The functions of the standard library. CEL itself would find out at the first record that there is no such function.
const FUNCTIONS: &[&str] = &[
    "bool",
    "bytes",
    "contains",
    "double",
    "duration",
    "dyn",
    "endsWith",
    "getDate",
    "getDayOfMonth",
    "getDayOfWeek",
    "getDayOfYear",
    "getFullYear",
    "getHours",
    "getMilliseconds",
    "getMinutes",
    "getMonth",
    "getSeconds",
    "int",
    "matches",
    "size",
    "startsWith",
    "string",
    "timestamp",
    "type",
    "uint",
];

/// The name of the record as a whole.
const RECORD: &str = "record";

/// Building the standard library takes a hundred times as long as an evaluation, so all conditions share one.
static ENV: LazyLock<Arc<Env>> = LazyLock::new(|| Arc::new(Env::stdlib()));

/// Why a text is no condition, or why a record cannot be judged by it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FilterError {
    /// The text is no CEL expression.
    #[error("no CEL expression: {message} (line {line}, column {column} of the condition)")]
    Syntax {
        /// The line within the condition, from 1.
        line: u32,
        /// The column within the condition, from 1.
        column: u32,
        /// What the parser found.
        message: String,
    },
    /// There is no such function.
    #[error("unknown function `{name}`{suggestion}")]
    UnknownFunction {
        /// Its name.
        name: String,
        /// Empty, or what may have been meant.
        suggestion: String,
    },
    /// The condition is neither true nor false.
    #[error("the condition gives {found}, not true or false")]
    NotBool {
        /// The kind of value.
        found: String,
    },
    /// The condition cannot be evaluated for this record.
    #[error("the condition cannot be evaluated: {message}")]
    Evaluation {
        /// Why.
        message: String,
    },
}

/// A compiled condition. Cloning shares it.
///
/// ```
/// use job::filter::Filter;
/// use job::record::{JsonRecord, Origin};
///
/// let origin = Origin { file: "a".into(), line: 1, offset: 0, split_start: 0 };
/// let flight = JsonRecord::parse(r#"{"distance": 719, "carrier": "UA"}"#.into(), origin)?;
/// assert!(Filter::compile("distance > 500 && carrier == 'UA'")?.evaluate(&flight)?);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct Filter {
    source: Arc<str>,
    expression: Arc<IdedExpr>,
}

impl fmt::Debug for Filter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Filter").field(&self.source).finish()
    }
}

impl PartialEq for Filter {
    fn eq(&self, other: &Self) -> bool {
        self.source == other.source
    }
}

impl Filter {
    /// Compiles a condition.
    ///
    /// # Errors
    ///
    /// [`FilterError::Syntax`] and [`FilterError::UnknownFunction`].
    pub fn compile(source: &str) -> Result<Self, FilterError> {
        let program = ENV.compile(source).map_err(|errors| match errors.errors.first() {
            Some(first) => FilterError::Syntax {
                line: u32::try_from(first.pos.0).unwrap_or(1).max(1),
                column: u32::try_from(first.pos.1).unwrap_or(1).max(1),
                message: shortened(&first.msg),
            },
            None => FilterError::Syntax { line: 1, column: 1, message: "cannot be read".to_owned() },
        })?;
        let references = program.references();
        let mut functions = references.functions();
        functions.sort_unstable();
        // Operators are functions whose names do not begin with a letter.
        let unknown = functions.into_iter().find(|name| {
            name.starts_with(|c: char| c.is_ascii_alphabetic()) && FUNCTIONS.binary_search(name).is_err()
        });
        if let Some(name) = unknown {
            let suggestion = closest(name, FUNCTIONS.iter().copied())
                .map_or_else(String::new, |near| format!(", did you mean `{near}`?"));
            return Err(FilterError::UnknownFunction { name: name.to_owned(), suggestion });
        }
        let mut expression = program.expression().clone();
        presence::rewrite(&mut expression);
        Ok(Self { source: source.into(), expression: Arc::new(expression) })
    }

    /// The text it was compiled from.
    #[must_use]
    pub fn source(&self) -> &str {
        &self.source
    }

    /// Whether the condition holds for a record.
    ///
    /// # Errors
    ///
    /// [`FilterError::Evaluation`] where a field is missing, null or of a type that the condition does not suit, and
    /// [`FilterError::NotBool`].
    pub fn evaluate(&self, record: &JsonRecord) -> Result<bool, FilterError> {
        let variables = Variables(Fields(record));
        let mut context = Context::with_env(Arc::clone(&ENV));
        context.set_variable_resolver(&variables);
        match Value::resolve(&self.expression, &context) {
            Ok(Value::Bool(holds)) => Ok(holds),
            Ok(other) => Err(FilterError::NotBool { found: kind_of(&other).to_owned() }),
            Err(error) => Err(FilterError::Evaluation { message: explained(&error, record) }),
        }
    }
}

struct Variables<'a>(Fields<'a>);

impl VariableResolver for Variables<'_> {
    fn resolve<'b>(&'b self, name: &str) -> Option<CowVal<'b, 'b>> {
        if name == RECORD {
            return Some(CowVal::Borrowed(&self.0));
        }
        if let Some(mut fields) = presence::fields_or_null(name) {
            let outermost = fields.next().and_then(|field| self.0.0.field(field));
            let value = outermost.and_then(|value| fields.try_fold(value, member));
            return to_val(value.unwrap_or(JsonText::NULL)).map(CowVal::Owned);
        }
        // `a.b` is tried as one name first; it means the field b of a.
        if name.contains('.') {
            return None;
        }
        self.0.0.field(name).and_then(to_val).map(CowVal::Owned)
    }
}

/// The parser lists each of the dozens of tokens that might follow; what it found is what helps.
fn shortened(message: &str) -> String {
    let message = message.strip_prefix("Syntax error: ").unwrap_or(message);
    let message = message.split(" expecting ").next().unwrap_or(message);
    message.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn explained(error: &ExecutionError, record: &JsonRecord) -> String {
    match error {
        ExecutionError::UndeclaredReference(name) if record.field(name).is_some() => {
            format!("the field {name} {}", value::UNUSABLE)
        }
        ExecutionError::UndeclaredReference(name) => format!("the record has no field {name}"),
        ExecutionError::NoSuchKey(name) => format!("there is no field {name}"),
        other => other.to_string(),
    }
}

fn kind_of(value: &Value) -> &'static str {
    match value {
        Value::Int(_) | Value::UInt(_) | Value::Float(_) => "a number",
        Value::String(_) => "a string",
        Value::Null => "null",
        Value::List(_) => "a list",
        Value::Map(_) => "a map",
        _ => "another value",
    }
}
