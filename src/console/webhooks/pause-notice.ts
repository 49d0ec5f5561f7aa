/** Explains why a webhook is paused, until when, and what ends the pause sooner. */
import { html } from 'hono/html';
import { renderSecond } from '../../pages/elements.ts';
import type { Html } from '../../pages/layout.ts';
import type { ConsoleTexts } from '../texts/texts.ts';
import type { HookView } from './hook-views.ts';

export function renderPause(
  texts: ConsoleTexts,
  { paused_since, paused_until, paused_reason, hookQueue }: HookView,
): Html | '' {
  const t = texts.hooks;
  if (paused_since === null || paused_until === null || paused_reason === null) return '';
  return html`<div class="notice warn"><p><strong>${t.pausedSince} ${renderSecond(texts, Date.parse(paused_since))}${texts.marks.colon}</strong>${t.pausedReasons[paused_reason]}${texts.marks.stop}${t.pausedUntil} ${renderSecond(texts, Date.parse(paused_until))}${texts.marks.stop}${t.pausedThen}</p><p>${t.testReleases(hookQueue.waiting)}</p></div>`;
}
