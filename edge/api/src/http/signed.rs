//! Signed requests: the body as it came and the four headers, checked when a handler says what they must permit.

use std::sync::Arc;

use axum::body::Bytes;
use axum::extract::{FromRequest, Request};
use axum::http::HeaderMap;
use walras_access::{Caller, Refusal};
use walras_gateway::{Allowance, AuthFields, Permission};
use walras_sequencer::{KeyName, SignedBy};
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

/// Whoever trades with a request.
#[derive(Debug)]
pub(super) struct Trader {
    pub(super) account: AccountId,
    /// What the log keeps of the signature.
    pub(super) signed: SignedBy,
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
    fn check(&self, permission: Permission) -> Result<Caller, ApiError> {
        self.check_either([permission; 2], Allowance::Requests)
    }

    fn check_either(&self, permissions: [Permission; 2], from: Allowance) -> Result<Caller, ApiError> {
        let missing = "send the headers Walras-Key, Walras-Timestamp, Walras-Nonce and Walras-Signature";
        let fields = self.fields.as_ref().ok_or_else(|| Refusal::new(RejectReason::Unauthenticated, missing))?;
        let request = walras_gateway::Request { method: &self.method, path: &self.path, body: &self.body };
        let caller = self.app.access.authorize_either(&request, fields, permissions, from)?;
        self.place.has_shown(&caller);
        Ok(caller)
    }

    fn account(&self, permission: Permission, from: Allowance) -> Result<Trader, ApiError> {
        let of_nobody = || Refusal::new(RejectReason::Forbidden, "the key belongs to no account");
        let caller = self.check_either([permission; 2], from)?;
        Ok(Trader { account: caller.account.ok_or_else(of_nobody)?, signed: signed_by(None, &caller) })
    }

    /// The account that the key may read.
    pub(super) fn reader(&self) -> Result<AccountId, ApiError> {
        Ok(self.account(Permission::Read, Allowance::Requests)?.account)
    }

    /// The account that the key may trade for.
    pub(super) fn trader(&self) -> Result<Trader, ApiError> {
        self.account(Permission::Trade, Allowance::Requests)
    }

    /// The account, and who is charged for the further commands of the request.
    pub(super) fn trader_of_many(&self) -> Result<(Trader, Caller), ApiError> {
        let of_nobody = || Refusal::new(RejectReason::Forbidden, "the key belongs to no account");
        let caller = self.check_either([Permission::Trade; 2], Allowance::Requests)?;
        let trader = Trader { account: caller.account.ok_or_else(of_nobody)?, signed: signed_by(None, &caller) };
        Ok((trader, caller))
    }

    /// The same for a cancel, which a throttled key may still send.
    pub(super) fn canceller(&self) -> Result<Trader, ApiError> {
        self.account(Permission::Trade, Allowance::Cancels)
    }

    /// The operator's key that it was signed with, and its nonce.
    pub(super) fn operator(&self) -> Result<SignedBy, ApiError> {
        let caller = self.check(Permission::Operator)?;
        Ok(signed_by(Some(self.operator_name()?), &caller))
    }

    /// The operator's key that it was signed with, for a request that leaves nothing in the log.
    pub(super) fn operator_key(&self) -> Result<KeyName, ApiError> {
        self.check(Permission::Operator)?;
        self.operator_name()
    }

    /// The name of the key, once it was checked.
    pub(super) fn operator_name(&self) -> Result<KeyName, ApiError> {
        let id = self.fields.as_ref().map_or("", |fields| &fields.key);
        Ok(KeyName::new(id).ok_or(RejectReason::UnknownKey)?)
    }

    /// Whether the key may deliver another shard's transfers: it is a transfer relay's or the operator's.
    pub(super) fn transfer_relay(&self) -> Result<(), ApiError> {
        self.check_either([Permission::Operator, Permission::TransferRelay], Allowance::Requests).map(|_| ())
    }
}

fn signed_by(key: Option<KeyName>, caller: &Caller) -> SignedBy {
    SignedBy { key, nonce: Some(Box::new(caller.nonce)) }
}
