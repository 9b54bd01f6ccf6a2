//! Signed requests: the body as it came and the four headers, checked when a handler says what they must permit.

use std::sync::Arc;

use axum::body::Bytes;
use axum::extract::{FromRequest, Request};
use axum::http::HeaderMap;
use walras_access::Refusal;
use walras_gateway::{Allowance, AuthFields, Permission};
use walras_sequencer::KeyName;
use walras_types::{AccountId, RejectReason};

use super::{ApiError, App, Place, place_of};

/// A request that claims to come from a key. Nothing is known of it before one of its methods was called.
#[derive(Debug)]
pub(super) struct Signed {
    app: App,
    method: String,
    path: String,
    fields: Option<AuthFields>,
    /// The connection that it came by.
    place: Arc<Place>,
    /// As it came.
    pub(super) body: Bytes,
}

fn fields(headers: &HeaderMap) -> Option<AuthFields> {
    let header = |name| headers.get(name)?.to_str().ok().map(str::to_owned);
    Some(AuthFields {
        key: header("walras-key")?,
        timestamp: header("walras-timestamp")?,
        nonce: header("walras-nonce")?,
        signature: header("walras-signature")?,
    })
}

impl FromRequest<App> for Signed {
    type Rejection = ApiError;

    async fn from_request(request: Request, app: &App) -> Result<Self, ApiError> {
        let place = place_of(&request);
        let (parts, body) = request.into_parts();
        let path = parts.uri.path_and_query().map_or("/", |p| p.as_str()).to_owned();
        let max = app.config.http.body_bytes_max;
        let body = axum::body::to_bytes(body, max).await.map_err(|e| {
            // The limit is the only failure that has an answer; a connection that broke has nobody to read one.
            Refusal::new(RejectReason::TooLarge, format!("{e}; at most {max} bytes are read"))
        })?;
        Ok(Self { app: app.clone(), method: parts.method.as_str().to_owned(), path, fields: fields(&parts.headers), place, body })
    }
}

impl Signed {
    fn check(&self, permission: Permission) -> Result<Option<AccountId>, ApiError> {
        self.check_either([permission; 2], Allowance::Requests)
    }

    fn check_either(&self, permissions: [Permission; 2], from: Allowance) -> Result<Option<AccountId>, ApiError> {
        let missing = "send the headers Walras-Key, Walras-Timestamp, Walras-Nonce and Walras-Signature";
        let fields = self.fields.as_ref().ok_or_else(|| Refusal::new(RejectReason::Unauthenticated, missing))?;
        let request = walras_gateway::Request { method: &self.method, path: &self.path, body: &self.body };
        let caller = self.app.access.authorize_either(&request, fields, permissions, from)?;
        self.place.has_shown(caller.permissions);
        Ok(caller.account)
    }

    fn account(&self, permission: Permission, from: Allowance) -> Result<AccountId, ApiError> {
        let of_nobody = || Refusal::new(RejectReason::Forbidden, "the key belongs to no account");
        Ok(self.check_either([permission; 2], from)?.ok_or_else(of_nobody)?)
    }

    /// The account that the key may read.
    pub(super) fn reader(&self) -> Result<AccountId, ApiError> {
        self.account(Permission::Read, Allowance::Requests)
    }

    /// The account that the key may trade for.
    pub(super) fn trader(&self) -> Result<AccountId, ApiError> {
        self.account(Permission::Trade, Allowance::Requests)
    }

    /// The same for a cancel, which a throttled key may still send.
    pub(super) fn canceller(&self) -> Result<AccountId, ApiError> {
        self.account(Permission::Trade, Allowance::Cancels)
    }

    /// The operator's key that it was signed with.
    pub(super) fn operator(&self) -> Result<KeyName, ApiError> {
        self.check(Permission::Operator)?;
        let id = self.fields.as_ref().map_or("", |fields| &fields.key);
        Ok(KeyName::new(id).ok_or(RejectReason::UnknownKey)?)
    }

    /// Whether the key may deliver another shard's transfers: it is a transfer relay's or the operator's.
    pub(super) fn transfer_relay(&self) -> Result<(), ApiError> {
        self.check_either([Permission::Operator, Permission::TransferRelay], Allowance::Requests).map(|_| ())
    }
}
