/** Describes each header of a delivery, for the API reference. */

const ID = 'ID of the delivery, the same at every retry and redelivery.';
const EVENT = 'Kind of the event. It decides how the body is read.';
const USER_AGENT = 'The program that sends. It proves nothing: everyone can send it.';
const SAME_ID = 'The ID of the delivery once more, where receivers of this code host look for it.';

const HEADER_MEANINGS: Readonly<Record<string, string>> = {
  'Content-Type': 'The body is JSON in UTF-8.',
  'User-Agent': USER_AGENT,
  'webhook-id': `${ID} Deliveries come at least once: store the IDs that were handled, and answer a repeated one with 2xx. Part of what \`webhook-signature\` signs.`,
  'webhook-timestamp':
    'When this attempt was made, in seconds since 1970-01-01 UTC. Part of what `webhook-signature` signs: a receiver that refuses times more than five minutes away cannot be sent a copy later.',
  'webhook-signature':
    'Proof of the sender, in every profile: `v1,` and the base64 HMAC-SHA256 of `<webhook-id>.<webhook-timestamp>.<body>` under the key. For a day after a change of the key there is one for each key, separated by blanks; one that matches is enough. Absent if the webhook has no key.',
  'X-GitCode-Event': EVENT,
  'X-GitCode-Delivery': `${ID} Deliveries come at least once: store the IDs that were handled, and answer a repeated one with 2xx.`,
  'X-GitCode-Token':
    'Proof of the sender of a webhook with `encryption_type` 0: its password. Compare it in constant time.',
  'X-GitCode-Signature-256':
    'Proof of the sender of a webhook with `encryption_type` 1: `sha256=` and the HMAC-SHA256 of the body under the key, in hex. Compute it over the bytes as they came, and compare in constant time.',
  'X-Gitee-Token':
    'Proof of the sender: the base64 HMAC-SHA256 of `<X-Gitee-Timestamp>\\n<key>` under the key (`encryption_type` 1), or the password (`encryption_type` 0). It does not cover the body; `webhook-signature` does.',
  'X-Gitee-Timestamp':
    'When this attempt was made, in milliseconds since 1970-01-01 UTC. Part of what `X-Gitee-Token` signs.',
  'X-Gitee-Event': EVENT,
  'X-Git-Oschina-Event': 'The same as `X-Gitee-Event`, for older receivers.',
  'X-Gitee-Ping': 'Always `false`: every delivery is of an event.',
  'X-Request-ID': `${SAME_ID} Without hyphens.`,
  'X-GitHub-Event': EVENT,
  'X-GitHub-Delivery': `${ID} Deliveries come at least once: store the IDs that were handled, and answer a repeated one with 2xx.`,
  'X-GitHub-Hook-ID': 'Number of the webhook.',
  'X-Hub-Signature-256':
    'Proof of the sender: `sha256=` and the HMAC-SHA256 of the body under the key, in hex. Compute it over the bytes as they came, and compare in constant time.',
  'X-Hub-Signature': 'The same with SHA-1, for older receivers. Check `X-Hub-Signature-256` instead.',
  'X-Gitlab-Event': EVENT,
  'X-Gitlab-Webhook-UUID': SAME_ID,
  'X-Gitlab-Event-UUID': SAME_ID,
  'Idempotency-Key': `${ID} Deliveries come at least once: store the IDs that were handled, and answer a repeated one with 2xx.`,
  'X-Gitlab-Token':
    'Proof of the sender of a webhook with `encryption_type` 0: its password. Compare it in constant time. With `encryption_type` 1, `webhook-signature` is the proof.',
};

export function describeHeader(name: string): string {
  const meaning = HEADER_MEANINGS[name];
  if (meaning === undefined) throw new Error(`The header ${name} has no description`);
  return meaning;
}
