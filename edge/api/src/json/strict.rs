//! One reader of JSON for REST and WebSocket: a key that stands twice in an object, at any depth, is refused by its name. Where the last
//! value won, an order with two sides would trade on one that its sender may not have meant.

use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Value};
use walras_access::Refusal;

/// The one object that `bytes` are.
pub fn object(bytes: &[u8]) -> Result<Map<String, Value>, Refusal> {
    let mut reader = serde_json::Deserializer::from_slice(bytes);
    let value = Strict.deserialize(&mut reader).and_then(|value| reader.end().map(|()| value));
    match value.map_err(|e| Refusal::malformed(e.to_string()))? {
        Value::Object(object) => Ok(object),
        _ => Err(Refusal::malformed("send one JSON object")),
    }
}

/// Any JSON, without a key twice.
struct Strict;

impl<'de> DeserializeSeed<'de> for Strict {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, reader: D) -> Result<Value, D::Error> {
        reader.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Strict {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_f64<E>(self, value: f64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_string<E>(self, value: String) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut elements: A) -> Result<Value, A::Error> {
        let mut list = Vec::new();
        while let Some(element) = elements.next_element_seed(Strict)? {
            list.push(element);
        }
        Ok(list.into())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Value, A::Error> {
        let mut object = Map::new();
        while let Some(name) = entries.next_key::<String>()? {
            if object.contains_key(&name) {
                return Err(A::Error::custom(format_args!("duplicate field `{name}`: give each field once")));
            }
            object.insert(name, entries.next_value_seed(Strict)?);
        }
        Ok(object.into())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_is_read_is_what_the_library_reads() {
        for text in [r#"{}"#, r#"{"a":[1,-2,0.5,null,true,"\u0041",{"b":{}}],"c":18446744073709551615}"#, " {\"a\":\"\"}\n"] {
            let read = object(text.as_bytes()).unwrap();
            assert_eq!(Value::Object(read), serde_json::from_str::<Value>(text).unwrap(), "{text}");
        }
        assert_eq!(object(br#"{"a":{"x":1},"b":{"x":1}}"#).unwrap()["b"], json!({"x": 1}), "one name in two objects");
    }

    #[test]
    fn a_key_that_stands_twice_is_named() {
        for (text, name) in [
            (r#"{"side":"buy","side":"sell"}"#, "side"),
            (r#"{"side":"buy","side":"buy"}"#, "side"),
            (r#"{"side":"buy","s\u0069de":"sell"}"#, "side"),
            (r#"{"a":[{"deep":{"x":1,"y":2,"x":3}}]}"#, "x"),
        ] {
            let refusal = object(text.as_bytes()).unwrap_err();
            assert!(refusal.detail.unwrap().contains(&format!("duplicate field `{name}`")), "{text}");
        }
    }

    #[test]
    fn what_is_no_object_is_refused() {
        for text in ["", "{", "[]", "7", "null", r#""a""#, "{} {}", r#"{"a":1}x"#, r#"{"a":}"#] {
            assert!(object(text.as_bytes()).is_err(), "{text}");
        }
        let deep = format!("{}1{}", r#"{"a":"#.repeat(5_000), "}".repeat(5_000));
        assert!(object(deep.as_bytes()).is_err(), "too deep to be read");
    }
}
