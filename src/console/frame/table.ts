import { html } from 'hono/html';
import type { Html } from '../../pages/layout.ts';
import type { ConsoleTexts } from '../texts/texts.ts';

export interface Table {
  /** What the table lists, for screen readers. */
  readonly label: string;
  readonly columns: readonly string[];
  readonly rows: readonly (readonly (string | Html)[])[];
  /** How many columns from the left hold text; the first is the header of its row. */
  readonly textColumns: number;
}

/** A table that is too wide scrolls sideways, also by keyboard. */
export function renderTable(texts: ConsoleTexts, { label, columns, rows, textColumns }: Table): Html {
  const shade = (column: number) => (column < textColumns ? '' : html` class="number"`);
  const head = columns.map((name, column) => html`<th scope="col"${shade(column)}>${name}</th>`);
  const body = rows.map(
    (cells) =>
      html`<tr>${cells.map((cell, column) => (column === 0 ? html`<th scope="row">${cell}</th>` : html`<td${shade(column)}>${cell}</td>`))}</tr>`,
  );
  return html`<div class="scroll" role="region" aria-label="${texts.table(label)}" tabindex="0"><table><thead><tr>${head}</tr></thead><tbody>${body}</tbody></table></div>`;
}
