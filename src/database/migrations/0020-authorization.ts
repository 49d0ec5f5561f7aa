/** Creates the tables of OAuth: applications, codes, tokens, device codes, signing keys. */
import type { Migration } from '../store.ts';

export const authorization: Migration = {
  id: 20,
  name: 'authorization',
  statements: [
    `CREATE TABLE applications (
      client_id {TEXT} NOT NULL PRIMARY KEY,
      name {TEXT} NOT NULL,
      owner_id {TEXT},
      homepage {TEXT} NOT NULL,
      description {TEXT} NOT NULL,
      is_public {INT} NOT NULL,
      redirect_uris {TEXT} NOT NULL,
      grant_types {TEXT} NOT NULL,
      authenticated_refresh {INT} NOT NULL,
      may_introspect {INT} NOT NULL,
      secret_in_query_at_ms {INT},
      disabled_at_ms {INT},
      created_at_ms {INT} NOT NULL
    )`,
    'CREATE INDEX applications_by_owner ON applications (owner_id)',
    // Two slots: a new secret is put in beside the old one, so that changing it needs no downtime.
    `CREATE TABLE application_secrets (
      client_id {TEXT} NOT NULL,
      slot {INT} NOT NULL CHECK (slot IN (1, 2)),
      secret_hash {BLOB} NOT NULL,
      hint {TEXT} NOT NULL,
      created_at_ms {INT} NOT NULL,
      last_used_at_ms {INT},
      PRIMARY KEY (client_id, slot)
    )`,
    `CREATE TABLE consents (
      user_id {TEXT} NOT NULL,
      client_id {TEXT} NOT NULL,
      scope {TEXT} NOT NULL,
      created_at_ms {INT} NOT NULL,
      updated_at_ms {INT} NOT NULL,
      PRIMARY KEY (user_id, client_id)
    )`,
    'CREATE INDEX consents_by_client ON consents (client_id)',
    `CREATE TABLE authorization_codes (
      code_hash {BLOB} NOT NULL PRIMARY KEY,
      client_id {TEXT} NOT NULL,
      user_id {TEXT} NOT NULL,
      redirect_uri {TEXT} NOT NULL,
      code_challenge {TEXT},
      scope {TEXT} NOT NULL,
      nonce {TEXT},
      auth_time_ms {INT} NOT NULL,
      issued_at_ms {INT} NOT NULL,
      expires_at_ms {INT} NOT NULL,
      failed_attempts {INT} NOT NULL,
      redeemed_at_ms {INT},
      family_id {TEXT}
    )`,
    'CREATE INDEX authorization_codes_by_expiry ON authorization_codes (expires_at_ms)',
    // One grant of a user to an application: every token that was issued under it becomes invalid with it.
    `CREATE TABLE token_families (
      family_id {TEXT} NOT NULL PRIMARY KEY,
      client_id {TEXT} NOT NULL,
      user_id {TEXT},
      scope {TEXT} NOT NULL,
      auth_time_ms {INT} NOT NULL,
      created_at_ms {INT} NOT NULL,
      expires_at_ms {INT} NOT NULL,
      revoked_at_ms {INT}
    )`,
    'CREATE INDEX token_families_by_user ON token_families (user_id, client_id)',
    'CREATE INDEX token_families_by_client ON token_families (client_id)',
    'CREATE INDEX token_families_by_expiry ON token_families (expires_at_ms)',
    // UNIQUE (family_id, generation): whatever the code does, a token of a family cannot have two successors.
    `CREATE TABLE refresh_tokens (
      token_hash {BLOB} NOT NULL PRIMARY KEY,
      family_id {TEXT} NOT NULL,
      generation {INT} NOT NULL,
      issued_at_ms {INT} NOT NULL,
      expires_at_ms {INT} NOT NULL,
      rotated_at_ms {INT},
      successor_seed {BLOB},
      UNIQUE (family_id, generation)
    )`,
    'CREATE INDEX refresh_tokens_by_expiry ON refresh_tokens (expires_at_ms)',
    `CREATE TABLE access_tokens (
      token_hash {BLOB} NOT NULL PRIMARY KEY,
      family_id {TEXT} NOT NULL,
      scope {TEXT} NOT NULL,
      issued_at_ms {INT} NOT NULL,
      expires_at_ms {INT} NOT NULL,
      revoked_at_ms {INT}
    )`,
    'CREATE INDEX access_tokens_by_family ON access_tokens (family_id)',
    'CREATE INDEX access_tokens_by_expiry ON access_tokens (expires_at_ms)',
    `CREATE TABLE personal_tokens (
      token_id {TEXT} NOT NULL PRIMARY KEY,
      token_hash {BLOB} NOT NULL UNIQUE,
      user_id {TEXT} NOT NULL,
      name {TEXT} NOT NULL,
      scope {TEXT} NOT NULL,
      hint {TEXT} NOT NULL,
      created_at_ms {INT} NOT NULL,
      expires_at_ms {INT},
      last_used_at_ms {INT}
    )`,
    'CREATE INDEX personal_tokens_by_user ON personal_tokens (user_id)',
    'CREATE INDEX personal_tokens_by_expiry ON personal_tokens (expires_at_ms)',
    `CREATE TABLE device_codes (
      device_hash {BLOB} NOT NULL PRIMARY KEY,
      user_code {TEXT} NOT NULL UNIQUE,
      client_id {TEXT} NOT NULL,
      scope {TEXT} NOT NULL,
      state {TEXT} NOT NULL,
      user_id {TEXT},
      auth_time_ms {INT},
      interval_s {INT} NOT NULL,
      polled_at_ms {INT},
      issued_at_ms {INT} NOT NULL,
      expires_at_ms {INT} NOT NULL,
      family_id {TEXT}
    )`,
    'CREATE INDEX device_codes_by_expiry ON device_codes (expires_at_ms)',
    `CREATE TABLE signing_keys (
      kid {TEXT} NOT NULL PRIMARY KEY,
      public_jwk {TEXT} NOT NULL,
      private_key {BLOB} NOT NULL,
      created_at_ms {INT} NOT NULL,
      expires_at_ms {INT} NOT NULL
    )`,
    // git-credential-oauth uses a fixed, published client id; it redirects to a loopback port with an empty path.
    `INSERT INTO applications (client_id, name, owner_id, homepage, description, is_public, redirect_uris, grant_types,
       authenticated_refresh, may_introspect, created_at_ms)
     VALUES ('git-credential-oauth', 'git-credential-oauth', NULL, 'https://github.com/hickford/git-credential-oauth',
       'Git credential helper', 1, '["http://127.0.0.1","http://127.0.0.1/","http://[::1]","http://[::1]/"]',
       'authorization_code refresh_token device_code', 0, 0, 0)`,
  ],
};
