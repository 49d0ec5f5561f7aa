/** Lists the five kinds of event, with the flag that subscribes a hook to each. */
export const FLAG_OF = {
  push: 'push_events',
  tag_push: 'tag_push_events',
  issue: 'issues_events',
  note: 'note_events',
  merge_request: 'merge_requests_events',
} as const;

export type EventKind = keyof typeof FLAG_OF;

export const EVENT_KINDS = Object.keys(FLAG_OF) as readonly EventKind[];
