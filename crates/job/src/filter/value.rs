//! A record's values as CEL sees them.

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::Arc;

use cel::ExecutionError;
use cel::common::traits::{Container, Indexer, Sizer};
use cel::common::types::{
    CelBool, CelDouble, CelInt, CelList, CelMap, CelMapKey, CelNull, CelString, MAP_TYPE, Type,
};
use cel::common::value::{CowVal, Val};

use crate::record::{JsonRecord, JsonText, Kind, elements, members};

/// How deep a value may be; CEL's values are built and dropped recursively.
const DEEPEST: usize = 128;

/// What is said of a value that CEL has no value for.
pub(super) const UNUSABLE: &str = "cannot be used in a condition: it is nested deeper than 128 levels, \
     or holds a number beyond a double's range or half of a surrogate pair";

/// The record as a whole: a map whose values are made when they are asked for. It can be asked for fields
/// (`record.x`, `record["x"]`, `"x" in record`) and for its size.
#[derive(Debug, Clone, Copy)]
pub(super) struct Fields<'a>(pub(super) &'a JsonRecord);

impl Val for Fields<'_> {
    fn get_type(&self) -> &Type {
        Self::cel_type()
    }

    fn cel_type() -> &'static Type {
        &MAP_TYPE
    }

    fn as_container(&self) -> Option<&dyn Container> {
        Some(self)
    }

    fn as_indexer<'b, 'v>(&'b self) -> Option<&'b (dyn Indexer + 'v)>
    where
        Self: 'v,
    {
        Some(self)
    }

    fn into_indexer<'v>(self: Box<Self>) -> Option<Box<dyn Indexer + 'v>>
    where
        Self: 'v,
    {
        Some(self)
    }

    fn as_sizer(&self) -> Option<&dyn Sizer> {
        Some(self)
    }

    fn clone_as_boxed<'v>(&self) -> Box<dyn Val + 'v>
    where
        Self: 'v,
    {
        Box::new(*self)
    }
}

impl<'a> Fields<'a> {
    fn find(&self, key: &dyn Val) -> Result<Box<dyn Val + 'a>, ExecutionError> {
        let name = key.downcast_ref::<CelString>().map(CelString::inner).unwrap_or_default();
        let value = self.0.field(name).ok_or_else(|| ExecutionError::NoSuchKey(Arc::new(name.to_owned())))?;
        to_val(value).ok_or_else(|| ExecutionError::function_error("record", format!("{name} {UNUSABLE}")))
    }
}

impl Indexer for Fields<'_> {
    fn get<'b, 'v>(&'b self, key: &dyn Val) -> Result<CowVal<'b, 'v>, ExecutionError>
    where
        Self: 'v,
    {
        self.find(key).map(CowVal::Owned)
    }

    fn steal<'v>(self: Box<Self>, key: &dyn Val) -> Result<Box<dyn Val + 'v>, ExecutionError>
    where
        Self: 'v,
    {
        self.find(key).map(|value| value as Box<dyn Val + 'v>)
    }
}

impl Container for Fields<'_> {
    fn contains(&self, key: &dyn Val) -> Result<bool, ExecutionError> {
        Ok(key.downcast_ref::<CelString>().is_some_and(|name| self.0.field(name.inner()).is_some()))
    }
}

impl Sizer for Fields<'_> {
    fn size(&self) -> CelInt {
        i64::try_from(self.0.fields().count()).unwrap_or(i64::MAX).into()
    }
}

/// The CEL value of a JSON value; absent where there is none.
pub(super) fn to_val<'a>(text: JsonText<'a>) -> Option<Box<dyn Val + 'a>> {
    nested(text, DEEPEST)
}

fn nested<'a>(text: JsonText<'a>, levels: usize) -> Option<Box<dyn Val + 'a>> {
    Some(match text.kind() {
        Kind::Null => Box::new(CelNull),
        Kind::Bool => Box::new(CelBool::from(text.as_bool()?)),
        Kind::Number => match text.as_i64() {
            Some(integer) => Box::new(CelInt::from(integer)),
            None => Box::new(CelDouble::from(text.as_f64()?)),
        },
        Kind::String => Box::new(CelString::from(text.string().ok()?)),
        Kind::Array => {
            let levels = levels.checked_sub(1)?;
            let values = elements(text).into_iter().map(|element| nested(element, levels));
            Box::new(CelList::from(values.collect::<Option<Vec<_>>>()?))
        }
        Kind::Object => {
            let levels = levels.checked_sub(1)?;
            let mut map: HashMap<CelMapKey<'a>, Box<dyn Val + 'a>> = HashMap::new();
            for (name, value) in members(text) {
                let key = match name {
                    Cow::Borrowed(name) => CelMapKey::from(name),
                    Cow::Owned(name) => CelMapKey::from(name),
                };
                map.insert(key, nested(value, levels)?);
            }
            Box::new(CelMap::from(map))
        }
    })
}
