import { html } from 'hono/html';
import type { Html } from '../../pages/layout.ts';
import type { ConsoleTexts } from '../texts/texts.ts';

export interface Table {
  /** What the table lists, for screen readers. */
  readonly label: string;
  readonly columns: readonly string[];
  readonly rows: readonly (readonly (string | Html)[])[];
  /** So many on the left hold words; the first is the head of its row. */
  readonly textColumns: number;
}

/** Scrolls sideways by itself where it is too wide, also by keyboard. */
export function renderTable(texts: ConsoleTexts, { label, columns, rows, textColumns }: Table): Html {
  const shade = (column: number) => (column < textColumns ? '' : html` class="number"`);
  const head = columns.map((name, column) => html`<th scope="col"${shade(column)}>${name}</th>`);
  const body = rows.map(
    (cells) =>
      html`<tr>${cells.map((cell, column) => (column === 0 ? html`<th scope="row">${cell}</th>` : html`<td${shade(column)}>${cell}</td>`))}</tr>`,
  );
  return html`<div class="scroll" role="region" aria-label="${texts.table(label)}" tabindex="0"><table><thead><tr>${head}</tr></thead><tbody>${body}</tbody></table></div>`;
}
