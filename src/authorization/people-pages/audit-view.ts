/** Renders the audit log and its filters. */
import { html } from 'hono/html';
import {
  type Mistake,
  renderField,
  renderFilterFold,
  renderMistake,
  renderSelect,
  renderZone,
} from '../../pages/elements.ts';
import type { Html } from '../../pages/layout.ts';
import { type EventNames, renderEvent } from '../account-pages/activity-routes.ts';
import { AUDIT_KINDS, type RecordedEvent } from '../accounts/audit-store.ts';
import { MAX_READ } from '../administration/audit-operations.ts';
import type { Messages } from '../messages/messages.ts';

export const AUDIT = '/admin/activity';

export interface AuditFilter {
  readonly user: string;
  readonly by: string;
  readonly kind: string;
  /** OWNER/NAME. */
  readonly repository: string;
  /** The id of a webhook. */
  readonly hook: string;
  readonly since: string;
  readonly until: string;
  /** The time zone of `since` and `until`; empty without them. */
  readonly zone: string;
}

export interface AuditView {
  readonly events: readonly RecordedEvent[];
  readonly names: EventNames;
  readonly filter: AuditFilter;
  /** The URL of the next page. */
  readonly next: string | undefined;
  /** The search stopped before the page was full: the next page may have more events. */
  readonly isCut: boolean;
  readonly mistake: Mistake | undefined;
}

/** Formats the filter as a query string for the links of the page. */
export function formatAuditFilter(filter: AuditFilter, more: Readonly<Record<string, string>> = {}): string {
  const given = Object.entries({ ...filter, ...more }).filter(([, value]) => value !== '');
  return given.length === 0 ? '' : `?${new URLSearchParams(given).toString()}`;
}

export function renderAudit(messages: Messages, view: AuditView): Html {
  const t = messages.activity;
  const { events, names, filter, next, isCut, mistake } = view;
  const none = isCut ? t.noneSearched(MAX_READ) : t.noneFits;
  return html`<div class="tight"><h1>${t.allTitle}</h1><p class="soft">${t.allLead}</p></div>${renderMistake(messages, mistake, labelsOf(messages))}
${renderFilterFold(messages, renderFilter(messages, filter, mistake), { isOpen: formatAuditFilter(filter) !== '' })}
${events.length === 0 ? html`<p class="empty">${none}</p>` : html`<ul class="list">${events.map((event) => renderEvent(messages, event, names))}</ul>`}
${next === undefined ? '' : html`<p><a class="button plain" href="${next}">${isCut ? t.searchOlder : t.more}</a></p>`}
<p class="small">${messages.users.exportAs} <a href="${AUDIT}/export${formatAuditFilter(filter, { format: 'csv' })}">CSV</a>, <a href="${AUDIT}/export${formatAuditFilter(filter, { format: 'jsonl' })}">JSON lines</a></p>`;
}

function labelsOf({ activity: t, format: { timeZone } }: Messages) {
  return {
    user: t.account,
    by: t.by,
    kind: t.what,
    repository: t.repository,
    hook: t.hook,
    since: t.since(timeZone),
    until: t.until(timeZone),
  };
}

function renderFilter(messages: Messages, filter: AuditFilter, mistake: Mistake | undefined): Html {
  const t = messages.activity;
  const labels = labelsOf(messages);
  const kinds = AUDIT_KINDS.map((value) => ({ value, label: messages.audit[value] }));
  return html`<form method="get" class="card stack"><div class="pair fields">
${renderField({ name: 'user', label: labels.user, value: filter.user, autocomplete: 'off', isOptional: true, mistake })}
${renderField({ name: 'by', label: labels.by, value: filter.by, autocomplete: 'off', isOptional: true, mistake })}
${renderSelect({ name: 'kind', label: labels.kind, choices: [{ value: '', label: t.everything }, ...kinds], value: filter.kind, mistake })}
${renderField({ name: 'repository', label: labels.repository, value: filter.repository, autocomplete: 'off', isOptional: true, mistake })}
${renderField({ name: 'hook', label: labels.hook, value: filter.hook, autocomplete: 'off', isOptional: true, mistake })}
${renderField({ name: 'since', label: labels.since, type: 'datetime-local', value: filter.since, isOptional: true, mistake })}
${renderField({ name: 'until', label: labels.until, type: 'datetime-local', value: filter.until, isOptional: true, mistake })}
</div>${renderZone(messages)}<button class="plain">${messages.users.find}</button></form>`;
}
