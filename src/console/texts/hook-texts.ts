/** Texts of the pages about webhooks. */
import { formatCount, plural } from '../../language/plural.ts';

function countWaiting(count: number): string {
  if (count >= 10_000) return 'more than 10,000 waiting deliveries are';
  return count === 1 ? 'the waiting delivery is' : `${formatCount(count)} waiting deliveries are`;
}

export const hookTexts = {
  none: 'This repository has no webhooks yet. One sends a request to your address whenever something happens here.',
  sources:
    'What happens here is announced by git (trivet git-hook install), by the webhooks of another code host (a bridge), or by your own programs:',
  sourcesLink: 'API of events',
  create: 'New webhook',
  edit: 'Change',
  editTitle: (id: number) => `Change webhook ${id}`,
  number: (id: number) => `Webhook ${id}`,
  states: {
    fresh: 'nothing sent yet',
    working: 'working',
    refused: 'last attempt failed',
    failing: 'failing',
    disabled: 'disabled',
  },
  url: 'Address',
  urlHint:
    'As https://ci.example.com/hook: on the public internet, or inside the network where the configuration of this service allows it. A receiver on your own machine is reached by a tunnel with a public address.',
  events: 'Send a request when',
  kinds: {
    push_events: 'code is pushed',
    tag_push_events: 'a tag is pushed',
    issues_events: 'an issue is opened or closed',
    note_events: 'a comment is written',
    merge_requests_events: 'a merge request is opened or merged',
  },
  shortKinds: {
    push_events: 'push',
    tag_push_events: 'tag push',
    issues_events: 'issue',
    note_events: 'comment',
    merge_requests_events: 'merge request',
  },
  noKinds: 'no events',
  proof: 'How the receiver verifies the sender',
  signature: 'By a signature',
  signatureHint: 'Over the whole body, with the key. The key itself is never sent.',
  password: 'By the password',
  passwordHint: 'The key is sent in a header.',
  key: 'Key',
  keyHint: 'A random key unless you enter your own; the receiver needs the same key.',
  profile: 'Format of the deliveries',
  profileHint: 'The code host that the receiver was written for.',
  submit: 'Create webhook',
  created: 'The webhook is created. Send a test to see whether the receiver answers.',
  saved: 'The webhook is saved.',
  lastDay: 'The last 24 hours',
  perHour: 'Deliveries an hour',
  chart: { succeeded: 'succeeded', failed: 'failed', waiting: 'not attempted yet' },
  picture: (succeeded: number, failed: number, waiting: number) =>
    `${plural(succeeded, 'delivery', 'deliveries')} succeeded, ${formatCount(failed)} failed${waiting === 0 ? '' : `, ${formatCount(waiting)} not attempted yet`}`,
  pictureCut: 'Only the newest 5,000 are counted here.',
  quiet: 'Nothing was sent.',
  lastResult: 'Last answer',
  noResult: 'None yet.',
  noAnswer: 'No answer',
  emptyAnswer: 'The body was empty.',
  disabledSince: 'Disabled since',
  failingSince: 'No attempt was accepted since',
  attempts: (count: number) => `in ${plural(count, 'attempt', 'attempts')}`,
  paused: 'paused',
  pausedSince: 'Nothing is sent since',
  pausedUntil: 'The pause ends at',
  pausedThen: 'One delivery then tries again, and if the receiver accepts it, the others follow.',
  pausedReasons: {
    failures: 'most of the last attempts failed',
    no_connection: 'no connection to the server can be made',
    retry_after: 'the receiver answered 429 and asked to wait',
  },
  testReleases: (count: number) =>
    `“Send a test” does not wait: if the receiver accepts it, the pause ends${count === 0 ? '' : ` and ${countWaiting(count)} sent`}.`,
  willDisable: 'After five days and twenty attempts without success it is disabled.',
  held: (count: number) =>
    `${count >= 10_000 ? 'More than 10,000 deliveries are' : count === 1 ? '1 delivery is' : `${formatCount(count)} deliveries are`} held and will be sent once it is enabled; what is held for seven days expires.`,
  heldShort: (count: number) => `${count >= 10_000 ? '10,000+' : formatCount(count)} held`,
  waitingShort: (count: number) => `${count >= 10_000 ? '10,000+' : formatCount(count)} waiting`,
  test: 'Send a test',
  testAccepted: 'The receiver accepted the test.',
  testRefused: 'The receiver did not accept the test.',
  testUnderWay: 'The test was sent; its result is not known yet.',
  enable: 'Enable again',
  enabled: 'The webhook is enabled. Held deliveries are being sent.',
  disable: 'Disable',
  disabledNow: 'The webhook is disabled. New deliveries are held for seven days.',
  settings: 'Settings',
  since: 'Created',
  showKey: 'Show the key',
  noKey: 'It has no key: the receiver cannot verify the sender.',
  changeKey: 'Change the key',
  changeKeyLead:
    'For a day the header webhook-signature has a signature for the new key and one for each former key: a receiver that checks it can move over at any time in between. The headers of the code host have the new key alone: let a receiver that checks those accept both keys before you change it here.',
  newKey: 'New key',
  newKeyHint: 'Leave it empty for a random one.',
  keyChanged: 'The key was changed. The new one is below, at “Show the key”.',
  removeKey: 'Remove the key',
  keyRemoved: 'The key was removed: the receiver can no longer verify the sender.',
  formerUntil: (count: number) =>
    count === 1 ? 'The former key signs too until' : `${count} former keys sign too, the last until`,
  replay: 'Send failed deliveries again',
  replayLead: 'All deliveries created since then that failed permanently, had a blocked address or expired.',
  replaySince: (zone: string) => `Since (${zone})`,
  replaySubmit: 'Send again',
  replayed: (count: number) =>
    count === 0
      ? 'No delivery has failed permanently since then.'
      : `${plural(count, 'delivery', 'deliveries')} will be sent again.`,
  delete: 'Delete the webhook',
  deleteLead: 'Waiting deliveries are canceled, and the delivery log is deleted too.',
  deleteConfirm: 'Yes, delete it',
  deleteUnconfirmed: 'Tick the box to confirm.',
  deleteSubmit: 'Delete webhook',
  deleted: 'The webhook is deleted.',
  recent: 'Deliveries',
  allDeliveries: 'All deliveries',
} as const;
