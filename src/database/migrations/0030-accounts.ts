/** Creates the tables of people, organizations, sessions, passkeys, attempts and the audit log. */
import type { Migration } from '../store.ts';

export const accounts: Migration = {
  id: 30,
  name: 'accounts',
  statements: [
    // One name space for people and organizations: the first segment of a repository's path.
    `CREATE TABLE logins (
      login_key {TEXT} NOT NULL PRIMARY KEY,
      kind {TEXT} NOT NULL,
      owner_id {TEXT} NOT NULL
    )`,
    `CREATE TABLE users (
      id {TEXT} NOT NULL PRIMARY KEY,
      login {TEXT} NOT NULL,
      login_key {TEXT} NOT NULL UNIQUE,
      name {TEXT} NOT NULL,
      email {TEXT},
      is_admin {INT} NOT NULL,
      password_hash {TEXT},
      password_changed_at_ms {INT},
      created_at_ms {INT} NOT NULL,
      disabled_at_ms {INT}
    )`,
    `CREATE TABLE organizations (
      id {TEXT} NOT NULL PRIMARY KEY,
      login {TEXT} NOT NULL,
      login_key {TEXT} NOT NULL UNIQUE,
      name {TEXT} NOT NULL,
      created_at_ms {INT} NOT NULL
    )`,
    `CREATE TABLE organization_members (
      organization_id {TEXT} NOT NULL,
      user_id {TEXT} NOT NULL,
      role {TEXT} NOT NULL,
      added_at_ms {INT} NOT NULL,
      PRIMARY KEY (organization_id, user_id)
    )`,
    'CREATE INDEX organization_members_by_user ON organization_members (user_id)',
    // Only the digest of the cookie is kept: a copy of the table cannot sign in.
    `CREATE TABLE sessions (
      id {TEXT} NOT NULL PRIMARY KEY,
      token_hash {TEXT} NOT NULL UNIQUE,
      user_id {TEXT} NOT NULL,
      method {TEXT} NOT NULL,
      auth_time_ms {INT} NOT NULL,
      last_seen_at_ms {INT} NOT NULL,
      address {TEXT} NOT NULL,
      user_agent {TEXT} NOT NULL
    )`,
    'CREATE INDEX sessions_by_user ON sessions (user_id)',
    'CREATE INDEX sessions_by_last_seen ON sessions (last_seen_at_ms)',
    // Short-lived single-use proofs: set-up links, second factors, passkey challenges, sign-ins at other providers.
    `CREATE TABLE tickets (
      token_hash {TEXT} NOT NULL,
      kind {TEXT} NOT NULL,
      content {BLOB} NOT NULL,
      expires_at_ms {INT} NOT NULL,
      PRIMARY KEY (token_hash, kind)
    )`,
    'CREATE INDEX tickets_by_expiry ON tickets (expires_at_ms)',
    `CREATE TABLE sign_in_attempts (
      subject {TEXT} NOT NULL PRIMARY KEY,
      debt_ms {INT} NOT NULL,
      last_at_ms {INT} NOT NULL
    )`,
    'CREATE INDEX sign_in_attempts_by_last ON sign_in_attempts (last_at_ms)',
    `CREATE TABLE totp_secrets (
      user_id {TEXT} NOT NULL PRIMARY KEY,
      seed {BLOB} NOT NULL,
      confirmed_at_ms {INT},
      last_step {INT} NOT NULL
    )`,
    `CREATE TABLE recovery_codes (
      user_id {TEXT} NOT NULL,
      code_hash {TEXT} NOT NULL,
      used_at_ms {INT},
      PRIMARY KEY (user_id, code_hash)
    )`,
    `CREATE TABLE passkeys (
      id {TEXT} NOT NULL PRIMARY KEY,
      user_id {TEXT} NOT NULL,
      name {TEXT} NOT NULL,
      public_key {BLOB} NOT NULL,
      counter {INT} NOT NULL,
      transports {TEXT} NOT NULL,
      created_at_ms {INT} NOT NULL,
      last_used_at_ms {INT}
    )`,
    'CREATE INDEX passkeys_by_user ON passkeys (user_id)',
    `CREATE TABLE upstream_accounts (
      issuer {TEXT} NOT NULL,
      subject {TEXT} NOT NULL,
      user_id {TEXT} NOT NULL,
      label {TEXT} NOT NULL,
      linked_at_ms {INT} NOT NULL,
      PRIMARY KEY (issuer, subject)
    )`,
    'CREATE INDEX upstream_accounts_by_user ON upstream_accounts (user_id)',
    `CREATE TABLE audit_events (
      id {TEXT} NOT NULL PRIMARY KEY,
      at_ms {INT} NOT NULL,
      kind {TEXT} NOT NULL,
      user_id {TEXT},
      actor_id {TEXT},
      client_id {TEXT},
      address {TEXT},
      details {TEXT} NOT NULL
    )`,
    'CREATE INDEX audit_events_by_time ON audit_events (at_ms, id)',
    'CREATE INDEX audit_events_by_user ON audit_events (user_id, at_ms, id)',
  ],
};
