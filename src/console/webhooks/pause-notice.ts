/** Why nothing is sent to a webhook for a while, until when, and what ends it sooner. */
import { html } from 'hono/html';
import { renderMoment } from '../../pages/elements.ts';
import type { Html } from '../../pages/layout.ts';
import { texts } from '../texts/texts.ts';
import type { HookView } from './hook-views.ts';

const t = texts.hooks;

export function renderPause({ paused_since, paused_until, paused_reason, endpoint }: HookView): Html | '' {
  if (paused_since === null || paused_until === null || paused_reason === null) return '';
  return html`<div class="notice warn"><p><strong>${t.pausedSince} ${renderMoment(Date.parse(paused_since))}:</strong> ${t.pausedReasons[paused_reason]}. ${t.pausedUntil} ${renderMoment(Date.parse(paused_until))}. ${t.pausedThen}</p><p>${t.testReleases(endpoint.waiting)}</p></div>`;
}
