//! A checker for the part of JSON Schema that `openapi.yaml` uses. A word that it does not know fails the check, so that nothing in the
//! document is there for show.

use std::sync::LazyLock;

use serde_json::Value;

/// The document.
pub(crate) fn document() -> Value {
    serde_saphyr::from_str(walras_api::http::OPENAPI_YAML).expect("openapi.yaml is YAML")
}

/// The description of the WebSocket.
pub(crate) fn socket_document() -> Value {
    serde_saphyr::from_str(walras_api::http::ASYNCAPI_YAML).expect("asyncapi.yaml is YAML")
}

/// The messages of an operation of the WebSocket: `ask` has what clients send, `tell` what the venue sends. Their names.
pub(crate) fn socket_messages(description: &Value, operation: &str) -> Vec<String> {
    let listed = description["operations"][operation]["messages"].as_array().expect("an operation has messages");
    listed.iter().map(|message| last_part(&message["$ref"]).to_owned()).collect()
}

fn last_part(reference: &Value) -> &str {
    reference.as_str().and_then(|path| path.rsplit('/').next()).expect("a reference to a part of a document")
}

/// `openapi.yaml`, and what the venue may send over the WebSocket: each message's name in `asyncapi.yaml` with the schema named for it.
static SENT: LazyLock<(Value, Vec<(String, Value)>)> = LazyLock::new(|| {
    let (document, description) = (document(), socket_document());
    let schema = |name: &str| {
        let payload = &description["channels"]["socket"]["messages"][name]["payload"]["$ref"];
        document["components"]["schemas"][last_part(payload)].clone()
    };
    let mut sent = Vec::new();
    for name in socket_messages(&description, "tell") {
        let schema = schema(&name);
        sent.push((name, schema));
    }
    (document, sent)
});

/// The name in `asyncapi.yaml` of a message that the venue sent over the WebSocket; says why where it is none of those that are
/// described, or more than one.
pub(crate) fn kind_of_sent(message: &Value) -> Result<&'static str, String> {
    let (document, sent) = &*SENT;
    let is_of_type =
        |schema: &Value| schema["properties"]["type"]["enum"].as_array().is_some_and(|types| types.contains(&message["type"]));
    let tried: Vec<(&'static str, Result<(), String>)> = sent
        .iter()
        .filter(|(_, schema)| is_of_type(schema))
        .map(|(name, schema)| (name.as_str(), check(document, schema, message)))
        .collect();
    let mut fitting = tried.iter().filter(|(_, result)| result.is_ok());
    match (fitting.next(), fitting.next()) {
        (Some(&(name, _)), None) => Ok(name),
        _ => Err(format!("asyncapi.yaml does not have this as exactly one message: {tried:?}\n{message:#}")),
    }
}

/// Checks a value against a schema; says where it fails.
pub(crate) fn check(document: &Value, schema: &Value, value: &Value) -> Result<(), String> {
    at(document, schema, value, "$")
}

/// Checks a value against a named schema.
pub(crate) fn check_named(document: &Value, name: &str, value: &Value) {
    let schema = &document["components"]["schemas"][name];
    assert!(schema.is_object(), "openapi.yaml has no schema {name}");
    if let Err(e) = check(document, schema, value) {
        panic!("{name}: {e}\n{value:#}");
    }
}

fn at(document: &Value, schema: &Value, value: &Value, path: &str) -> Result<(), String> {
    let Value::Object(words) = schema else { return Err(format!("{path}: the schema is no object: {schema}")) };
    for (word, says) in words {
        let wrong = |what: String| Err(format!("{path}: {what}, got {value}"));
        match word.as_str() {
            // A test of examples checks these.
            "description" | "default" | "example" => {}
            "$ref" => {
                let name = says.as_str().and_then(|r| r.strip_prefix("#/")).ok_or_else(|| format!("{path}: odd $ref {says}"))?;
                let target = document.pointer(&format!("/{name}")).ok_or_else(|| format!("{path}: {says} leads nowhere"))?;
                at(document, target, value, path)?;
            }
            "type" => {
                let names: Vec<&str> = match says {
                    Value::Array(names) => names.iter().filter_map(Value::as_str).collect(),
                    one => one.as_str().into_iter().collect(),
                };
                if !names.iter().any(|name| is_of(name, value)) {
                    return wrong(format!("expected {says}"));
                }
            }
            "format" => {
                if let Some(text) = value.as_str()
                    && !has_format(says.as_str().unwrap_or_default(), text)
                {
                    return wrong(format!("expected the format {says}"));
                }
            }
            "enum" => {
                if !says.as_array().is_some_and(|all| all.contains(value)) {
                    return wrong(format!("expected one of {says}"));
                }
            }
            "minimum" => {
                if value.as_i64().zip(says.as_i64()).is_some_and(|(value, least)| value < least) {
                    return wrong(format!("expected at least {says}"));
                }
            }
            "maximum" => {
                if value.as_i64().zip(says.as_i64()).is_some_and(|(value, most)| value > most) {
                    return wrong(format!("expected at most {says}"));
                }
            }
            "minItems" | "maxItems" => {
                let (count, bound) = (value.as_array().map_or(0, Vec::len) as u64, says.as_u64().unwrap_or(0));
                if (word == "minItems" && count < bound) || (word == "maxItems" && count > bound) {
                    return wrong(format!("{word} is {says}"));
                }
            }
            "items" => {
                for (index, item) in value.as_array().into_iter().flatten().enumerate() {
                    at(document, says, item, &format!("{path}[{index}]"))?;
                }
            }
            "prefixItems" => {
                let schemas = says.as_array().into_iter().flatten();
                for (index, (schema, item)) in schemas.zip(value.as_array().into_iter().flatten()).enumerate() {
                    at(document, schema, item, &format!("{path}[{index}]"))?;
                }
            }
            "required" => {
                for name in says.as_array().into_iter().flatten().filter_map(Value::as_str) {
                    if value.get(name).is_none() {
                        return wrong(format!("{name} is missing"));
                    }
                }
            }
            "properties" => {
                for (name, schema) in says.as_object().into_iter().flatten() {
                    if let Some(field) = value.get(name) {
                        at(document, schema, field, &format!("{path}.{name}"))?;
                    }
                }
            }
            "additionalProperties" => {
                let known = schema["properties"].as_object();
                for (name, field) in value.as_object().into_iter().flatten() {
                    if known.is_some_and(|known| known.contains_key(name)) {
                        continue;
                    }
                    if says == &Value::Bool(false) {
                        return wrong(format!("{name} is not documented"));
                    }
                    at(document, says, field, &format!("{path}.{name}"))?;
                }
            }
            "oneOf" => {
                let results: Vec<_> =
                    says.as_array().into_iter().flatten().map(|schema| at(document, schema, value, path)).collect();
                if results.iter().filter(|r| r.is_ok()).count() != 1 {
                    return wrong(format!("expected exactly one of {} schemas: {results:?}", results.len()));
                }
            }
            unknown => return Err(format!("{path}: the checker does not know `{unknown}`")),
        }
    }
    Ok(())
}

fn is_of(name: &str, value: &Value) -> bool {
    match name {
        "object" => value.is_object(),
        "array" => value.is_array(),
        "string" => value.is_string(),
        "boolean" => value.is_boolean(),
        "integer" => value.is_i64() || value.is_u64(),
        "null" => value.is_null(),
        other => panic!("the checker does not know the type {other}"),
    }
}

fn has_format(format: &str, text: &str) -> bool {
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    let decimal = |text: &str| match text.split_once('.') {
        Some((whole, fraction)) => digits(whole) && digits(fraction),
        None => digits(text),
    };
    match format {
        "digits" => digits(text),
        "decimal" => decimal(text),
        "client-order-id" => digits(text) || walras_types::ClientOrderName::new(text).is_some(),
        "signed-decimal" => decimal(text.strip_prefix('-').unwrap_or(text)),
        other => panic!("the checker does not know the format {other}"),
    }
}

#[test]
fn the_checker_finds_what_is_wrong() {
    use serde_json::json;
    let document = document();
    let level = json!({"$ref": "#/components/schemas/Level"});
    assert_eq!(check(&document, &level, &json!(["1.5", "2", 3])), Ok(()));
    for wrong in [json!(["1.5", "2"]), json!(["1.5", "x", 3]), json!(["1.5", "2", "3"]), json!(["1.", "2", 3]), json!({})] {
        assert!(check(&document, &level, &wrong).is_err(), "{wrong}");
    }
    let time = json!({"$ref": "#/components/schemas/Time"});
    assert_eq!(check(&document, &time, &json!({"time_ns": "5"})), Ok(()));
    for wrong in [json!({}), json!({"time_ns": 5}), json!({"time_ns": "5", "more": 1})] {
        assert!(check(&document, &time, &wrong).is_err(), "{wrong}");
    }
    let volumes = json!({"type": "object", "additionalProperties": {"type": "string", "format": "decimal"}});
    assert_eq!(check(&document, &volumes, &json!({"USD": "1.50", "EUR": "2"})), Ok(()));
    for wrong in [json!({"USD": 1}), json!({"USD": "x"}), json!({"USD": null}), json!([])] {
        assert!(check(&document, &volumes, &wrong).is_err(), "{wrong}");
    }
    assert!(check(&document, &json!({"maxLength": 3}), &json!("x")).is_err(), "an unknown word is no pass");
}

#[test]
fn a_message_that_is_not_described_is_noticed() {
    use serde_json::json;
    assert_eq!(kind_of_sent(&json!({"type": "pong", "time_ns": "5"})), Ok("pong"));
    for wrong in [
        json!({"type": "pong"}),
        json!({"type": "pong", "time_ns": 5}),
        json!({"type": "pong", "time_ns": "5", "more": 1}),
        json!({"type": "ping"}),
        json!({"time_ns": "5"}),
    ] {
        assert!(kind_of_sent(&wrong).is_err(), "{wrong}");
    }
}
