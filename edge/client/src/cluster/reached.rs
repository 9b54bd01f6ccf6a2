//! Which replicas a load goes to.

use serde_json::Value;

use crate::entry_stream::EntryTrust;
use crate::error::LoadError;
use crate::http::Client;

/// Where a replica is.
#[derive(Clone, Debug)]
pub struct ReplicaAddress {
    /// Its HTTP server, such as `http://127.0.0.1:7070`.
    pub url: String,
    /// Its order entry, such as `127.0.0.1:7272`.
    pub orders: String,
    /// With TLS: which certificate it may show there.
    pub trust: Option<EntryTrust>,
}

/// The replicas that take part in a load, and those that do not.
#[derive(Clone, Debug, Default)]
pub struct Reached {
    /// Whoever the asked replica is linked to, and itself.
    pub replicas: Vec<ReplicaAddress>,
    /// Ids of those that it is not linked to: they are down, or cut off.
    pub left_out: Vec<u64>,
}

/// Replicas by what one of them says.
pub fn replicas(client: &Client) -> Result<Reached, LoadError> {
    reached(&client.get("/v1/cluster")?)
}

fn reached(said: &Value) -> Result<Reached, LoadError> {
    let mut reached = Reached::default();
    for row in said["replicas"].as_array().into_iter().flatten() {
        let text = |field: &str| row[field].as_str().map(str::to_owned);
        let (Some(http), Some(orders)) = (text("http"), text("order_entry")) else { continue };
        match row["replica"].as_u64() {
            Some(id) if row["is_linked"] == false && row["replica"] != said["replica"] => reached.left_out.push(id),
            _ => reached.replicas.push(ReplicaAddress { url: format!("http://{http}"), orders, trust: None }),
        }
    }
    if reached.replicas.is_empty() { Err(LoadError::Cluster("no replica's order entry is known".to_owned())) } else { Ok(reached) }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_replica_that_is_down_is_left_out_and_named() {
        let row = |id: u64, is_linked: Value| {
            let [http, order_entry] = [7070, 7272].map(|port| format!("10.0.0.{id}:{port}"));
            json!({"replica": id, "is_linked": is_linked, "http": http, "order_entry": order_entry})
        };
        let said = json!({"replica": 1, "replicas": [row(1, json!(false)), row(2, json!(false)), row(3, json!(true))]});
        let Reached { replicas, left_out } = reached(&said).unwrap();
        let urls: Vec<&str> = replicas.iter().map(|replica| replica.url.as_str()).collect();
        assert_eq!((urls, left_out), (vec!["http://10.0.0.1:7070", "http://10.0.0.3:7070"], vec![2]));
        assert!(reached(&json!({"replica": 1, "replicas": []})).is_err());
    }
}
