/** Renders a table of a console page. */
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
  /** Each row becomes a card on a phone, with the name of the column beside each value. */
  readonly hasCards?: true;
}

/** Renders a table that scrolls sideways if it is too wide, also by keyboard. */
export function renderTable(texts: ConsoleTexts, table: Table): Html {
  const { label, columns, rows, textColumns, hasCards } = table;
  const role = createRoles(hasCards ?? false);
  const shade = (column: number) => (column < textColumns ? '' : html` class="number"`);
  const name = (column: number) => (hasCards ? html` data-label="${columns[column] ?? ''}"` : '');
  const head = columns.map((text, column) => html`<th scope="col"${role('columnheader')}${shade(column)}>${text}</th>`);
  const body = rows.map(
    (cells) =>
      html`<tr${role('row')}>${cells.map((cell, column) => (column === 0 ? html`<th scope="row"${role('rowheader')}>${cell}</th>` : html`<td${role('cell')}${shade(column)}${name(column)}>${cell}</td>`))}</tr>`,
  );
  return html`<div class="scroll${hasCards ? ' cards' : ''}" role="region" aria-label="${texts.table(label)}" tabindex="0"><table${role('table')}><thead${role('rowgroup')}><tr${role('row')}>${head}</tr></thead><tbody${role('rowgroup')}>${body}</tbody></table></div>`;
}

/** With the layout of cards, browsers no longer expose the elements as a table; explicit roles keep that for screen readers. */
function createRoles(hasCards: boolean) {
  return (role: string): Html | '' => (hasCards ? html` role="${role}"` : '');
}
